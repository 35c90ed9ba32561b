package sqlitedb_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
)

// committed gathers what InTx tells after a commit.
type committed []int64

func (c *committed) Committed(ids ...int64) { *c = append(*c, ids...) }

// InTx keeps what fn did and tells its ids only when it commits. An error of fn is fn's.
func TestInTx(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "shop.db"))
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	own := errors.New("no stock")
	for name, test := range map[string]struct {
		fails func(tx *sqlitedb.BoxTx) error
		is    error // nil: committed
		isNot error
	}{
		"commit":   {fails: func(*sqlitedb.BoxTx) error { return nil }},
		"an error": {fails: func(*sqlitedb.BoxTx) error { return own }, is: own},
		"a table of its own": {fails: func(tx *sqlitedb.BoxTx) error {
			_, err := tx.Exec("INSERT INTO missing VALUES (1)")
			return errors.Join(own, err)
		}, is: own, isNot: db.ErrNoSchema},
		"a panic": {fails: func(*sqlitedb.BoxTx) error { panic(own) }, is: own},
	} {
		var told committed
		var id int64
		err := contained(func() error {
			return sqlitedb.InTx(t.Context(), store, &told, func(tx *sqlitedb.BoxTx) error {
				receipt, err := box.Enqueue(t.Context(), tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: name})
				id = receipt.ID
				return errors.Join(err, test.fails(tx))
			})
		})
		if !errors.Is(err, test.is) || test.isNot != nil && errors.Is(err, test.isNot) {
			t.Errorf("%s: %v", name, err)
		}
		var kept bool
		if err := store.DB().QueryRow("SELECT EXISTS (SELECT 1 FROM outbox_message WHERE key = ?)", name).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if kept != (test.is == nil) || kept && !slices.Equal(told, committed{id}) || !kept && len(told) > 0 {
			t.Errorf("%s: kept %t, told %v of message %d", name, kept, told, id)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sqlitedb.InTx(ended, store, nil, func(*sqlitedb.BoxTx) error { return own }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	if err := sqlitedb.InTx(t.Context(), nil, nil, func(*sqlitedb.BoxTx) error { return nil }); err == nil {
		t.Error("a nil store was taken")
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

// A transaction that was begun as a reader and has read cannot write once another has: it is told to run again, and nothing of it stays. InTx on
// the same handle begins as a writer, so it can.
func TestC62WritersBeginAsWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	given, other := givenStore(t, path), openStore(t, path)
	box, err := outbox.New(given, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	readThenWrite := func(tx *sqlitedb.BoxTx, handle db.Tx, key string) error {
		var n int
		if err := tx.QueryRow("SELECT count(*) FROM outbox_message").Scan(&n); err != nil {
			return err
		}
		_, err := box.Enqueue(t.Context(), handle, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: key})
		return err
	}
	tx, err := given.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM outbox_message").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := other.RegisterWorker(t.Context(), db.RegisterWorkerParams{Name: "w"}); err != nil {
		t.Fatal(err)
	}
	_, err = box.Enqueue(t.Context(), sqlitedb.Tx(tx), outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: "late"})
	if !errors.Is(err, db.ErrRetry) {
		t.Errorf("a reader that writes: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	// Meanwhile another writer waits in line, and gets his turn after the commit.
	waits := make(chan error, 1)
	err = sqlitedb.InTx(t.Context(), given, nil, func(tx *sqlitedb.BoxTx) error {
		// A rival that does not wait is refused: the lock is held before anything was read.
		impatient, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(0)")
		if err != nil {
			return err
		}
		defer impatient.Close()
		if rival, err := impatient.BeginTx(t.Context(), nil); err == nil {
			_ = rival.Rollback()
			t.Error("another could write inside InTx")
		}
		go func() {
			_, err := other.RegisterWorker(context.WithoutCancel(t.Context()), db.RegisterWorkerParams{Name: "x"})
			waits <- err
		}()
		return readThenWrite(tx, tx, "first")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
}

// A transaction on another file is refused, and nothing is recorded there. One on the same file is taken, by whatever name it was opened.
func TestTransactionsOfOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "shop.db"), filepath.Join(dir, "link.db")
	store, other := openStore(t, path), openStore(t, filepath.Join(dir, "other.db"))
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	bounded := givenStore(t, path)
	bounded.DB().SetMaxOpenConns(1)
	if _, err := bounded.ReadVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := givenStore(t, path)
	fresh.DB().SetMaxOpenConns(1)
	for name, over := range map[string]*sqlitedb.Store{"opened": store, "given": givenStore(t, path), "bounded": bounded} {
		box, err := outbox.New(over, outbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for on, c := range map[string]struct {
			store   *sqlitedb.Store
			foreign bool
		}{
			"itself": {over, false}, "the same file": {givenStore(t, path), false}, "a link to it": {givenStore(t, link), false}, "another file": {other, true},
		} {
			enqueue := func(tx db.Tx, key string) {
				_, err := box.Enqueue(t.Context(), tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: name + on + key})
				if c.foreign != errors.Is(err, db.ErrForeignTx) || !c.foreign && err != nil ||
					c.foreign && (!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "other.db")) {
					t.Errorf("%s, %s: %v", name, on, err)
				}
			}
			if err := sqlitedb.InTx(t.Context(), c.store, box, func(tx *sqlitedb.BoxTx) error { enqueue(tx, "InTx"); return nil }); err != nil {
				t.Fatal(err)
			}
			tx, err := c.store.DB().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			enqueue(sqlitedb.Tx(tx), "Tx")
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A store that has not run anything, and whose one connection the transaction holds, does not wait for another.
	box, err := outbox.New(fresh, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := fresh.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := box.Enqueue(t.Context(), sqlitedb.Tx(tx), outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: "fresh"}); err != nil {
		t.Error(err)
	}
	var recorded int
	if err := other.DB().QueryRow("SELECT count(*) FROM outbox_message").Scan(&recorded); err != nil || recorded > 0 {
		t.Errorf("%d messages in the other file, %v", recorded, err)
	}
}
