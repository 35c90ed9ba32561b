package sqlitedb_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/badinput"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	badinput.Run(t, func(t *testing.T) badinput.Env {
		path := filepath.Join(t.TempDir(), "shop.db")
		store := openStore(t, path)
		begin := func(pool *sql.DB) *sql.Tx {
			tx, err := pool.BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			return tx
		}
		beside := func(name string) *sql.DB {
			pool, err := sql.Open("sqlite", name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { pool.Close() })
			return pool
		}
		return badinput.Env{
			Store: store,
			Begin: func() badinput.Tx {
				tx := begin(store.DB())
				return badinput.Tx{Handle: sqlitedb.Tx(tx), Commit: tx.Commit, Rollback: tx.Rollback}
			},
			Age: func(d time.Duration) { dbtest.SQL{DB: store.DB(), SQLite: true}.Age(t, d) },
			Broken: map[string]func() db.Tx{
				"closed": func() db.Tx {
					tx := begin(store.DB())
					_ = tx.Rollback()
					return sqlitedb.Tx(tx)
				},
				"read-only":       func() db.Tx { return sqlitedb.Tx(begin(beside("file:" + path + "?_query_only=1"))) },
				"of another file": func() db.Tx { return sqlitedb.Tx(begin(beside(filepath.Join(t.TempDir(), "other.db")))) },
			},
			Foreign: map[string]db.Tx{
				"of another driver": foreign{},
				"of nothing":        sqlitedb.Tx(nil),
				"a nil *BoxTx":      (*sqlitedb.BoxTx)(nil),
				"an empty BoxTx":    &sqlitedb.BoxTx{},
			},
		}
	})
}

type foreign struct{}

func (foreign) FencepostTx() {}
