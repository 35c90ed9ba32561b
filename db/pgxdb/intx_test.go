package pgxdb_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// committed gathers what InTx tells after a commit.
type committed []int64

func (c *committed) Committed(ids ...int64) { *c = append(*c, ids...) }

// InTx keeps what fn did and tells its ids only when it commits. An error of fn is fn's: of the server's refusals only the retryable is named.
// Shows: S1.39
func TestInTx(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	own := errors.New("no stock")
	raise := func(tx *pgxdb.BoxTx, state string) error {
		_, err := tx.Exec(t.Context(), "DO $$ BEGIN RAISE SQLSTATE '"+state+"'; END $$")
		return err
	}
	for name, test := range map[string]struct {
		fails func(tx *pgxdb.BoxTx) error
		is    error // nil: committed
		isNot error
	}{
		"commit":             {fails: func(*pgxdb.BoxTx) error { return nil }},
		"an error":           {fails: func(*pgxdb.BoxTx) error { return own }, is: own},
		"a table of its own": {fails: func(tx *pgxdb.BoxTx) error { return errors.Join(own, raise(tx, "42P01")) }, is: own, isNot: db.ErrNoSchema},
		"a deadlock":         {fails: func(tx *pgxdb.BoxTx) error { return raise(tx, "40P01") }, is: db.ErrRetry},
		"a panic":            {fails: func(*pgxdb.BoxTx) error { panic(own) }, is: own},
	} {
		var told committed
		var id int64
		err := contained(func() error {
			return pgxdb.InTx(t.Context(), pool, &told, func(tx *pgxdb.BoxTx) error {
				receipt, err := box.Enqueue(t.Context(), tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: name})
				id = receipt.ID
				return errors.Join(err, test.fails(tx))
			})
		})
		if !errors.Is(err, test.is) || test.isNot != nil && errors.Is(err, test.isNot) {
			t.Errorf("%s: %v", name, err)
		}
		var kept bool
		if err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM outbox.message WHERE key = $1)", name).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if kept != (test.is == nil) || kept && !slices.Equal(told, committed{id}) || !kept && len(told) > 0 {
			t.Errorf("%s: kept %t, told %v of message %d", name, kept, told, id)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pgxdb.InTx(ended, pool, nil, func(*pgxdb.BoxTx) error { return own }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

// A function that ends the transaction by a statement of its own is told; there is nothing left to commit.
func TestInTxEndedInside(t *testing.T) {
	t.Parallel()
	pool, _ := one(t, pgtest.New(t), pgx.QueryExecModeCacheStatement)
	for _, statement := range []string{"ROLLBACK", "COMMIT"} {
		err := pgxdb.InTx(t.Context(), pool, nil, func(tx *pgxdb.BoxTx) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "is over before its commit") {
			t.Errorf("%s: %v", statement, err)
		}
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
