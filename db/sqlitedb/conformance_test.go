package sqlitedb_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/schema"
)

// Shows: S2.14 S4.22
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("open", func(t *testing.T) {
		dbtest.Run(t, func(t *testing.T) dbtest.Harness {
			path := filepath.Join(t.TempDir(), "a shop's? 100% #1.db")
			return harness(t, path, openStore(t, path), openStore(t, path))
		})
	})
	t.Run("given", func(t *testing.T) {
		dbtest.RunPart(t, 0, 2, func(t *testing.T) dbtest.Harness {
			path := filepath.Join(t.TempDir(), "shop.db")
			return harness(t, path, givenStore(t, path), givenStore(t, path))
		})
	})
}

// quick is for tests that lose no power.
var quick = sqlitedb.Config{Synchronous: sqlitedb.Normal}

// openStore opens a file and makes its tables.
func openStore(t testing.TB, path string) *sqlitedb.Store {
	t.Helper()
	store, err := sqlitedb.Open(path, quick)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := store.DB().Stats().InUse; n != 0 {
			t.Errorf("%d connections were not given back", n)
		}
		store.Close()
	})
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return store
}

// givenStore is a store on a handle that begins its transactions as readers.
func givenStore(t testing.TB, path string) *sqlitedb.Store {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	store, err := sqlitedb.New(pool, quick)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := schema.Up(t.Context(), pool, schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return store
}

func harness(t testing.TB, path string, store, second *sqlitedb.Store) dbtest.Harness {
	t.Helper()
	beside := dbtest.SQL{DB: openStore(t, path).DB(), SQLite: true}
	return dbtest.Harness{
		Store:  store,
		Second: second,
		Begin: func(t testing.TB) (db.Tx, func() error, func() error) {
			tx, err := store.DB().BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return sqlitedb.Tx(tx), tx.Commit, tx.Rollback
		},
		Age:       beside.Age,
		Dump:      beside.Dump,
		Reset:     beside.Reset,
		OneWriter: true,
	}
}
