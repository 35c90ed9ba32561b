package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// committed gathers what InTx tells after a commit.
type committed []int64

func (c *committed) Committed(ids ...int64) { *c = append(*c, ids...) }

// InTx keeps what fn did and tells its ids only when it commits. An error of fn is fn's: of the server's refusals only the retryable is named.
// Shows: S3.1
func TestInTx(t *testing.T) {
	t.Parallel()
	pool, err := sql.Open("postgres", pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	own := errors.New("no stock")
	raise := func(tx *sqldb.BoxTx, state string) error {
		_, err := tx.ExecContext(t.Context(), "DO $$ BEGIN RAISE SQLSTATE '"+state+"'; END $$")
		return err
	}
	for name, test := range map[string]struct {
		fails func(tx *sqldb.BoxTx) error
		is    error // nil: committed
		isNot error
	}{
		"commit":             {fails: func(*sqldb.BoxTx) error { return nil }},
		"an error":           {fails: func(*sqldb.BoxTx) error { return own }, is: own},
		"a table of its own": {fails: func(tx *sqldb.BoxTx) error { return errors.Join(own, raise(tx, "42P01")) }, is: own, isNot: db.ErrNoSchema},
		"a deadlock":         {fails: func(tx *sqldb.BoxTx) error { return raise(tx, "40P01") }, is: db.ErrRetry},
		"a panic":            {fails: func(*sqldb.BoxTx) error { panic(own) }, is: own},
	} {
		var told committed
		var id int64
		err := contained(func() error {
			return sqldb.InTx(t.Context(), pool, &told, func(tx *sqldb.BoxTx) error {
				receipt, err := box.Enqueue(t.Context(), tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: name})
				id = receipt.ID
				return errors.Join(err, test.fails(tx))
			})
		})
		if !errors.Is(err, test.is) || test.isNot != nil && errors.Is(err, test.isNot) {
			t.Errorf("%s: %v", name, err)
		}
		var kept bool
		if err := pool.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM outbox.message WHERE key = $1)", name).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if kept != (test.is == nil) || kept && !slices.Equal(told, committed{id}) || !kept && len(told) > 0 {
			t.Errorf("%s: kept %t, told %v of message %d", name, kept, told, id)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sqldb.InTx(ended, pool, nil, func(*sqldb.BoxTx) error { return own }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

// contained turns a panic with an error into that error.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	return f()
}
