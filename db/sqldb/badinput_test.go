package sqldb_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/badinput"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	badinput.Run(t, func(t *testing.T) badinput.Env {
		open := func() *sql.DB {
			pool, err := sql.Open("postgres", pgtest.New(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { pool.Close() })
			return pool
		}
		pool, beside := open(), open()
		if _, err := beside.Exec("DROP SCHEMA outbox CASCADE"); err != nil {
			t.Fatal(err)
		}
		store, err := sqldb.New(pool, sqldb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		begin := func(pool *sql.DB, readOnly bool) *sql.Tx {
			tx, err := pool.BeginTx(context.WithoutCancel(t.Context()), &sql.TxOptions{ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			return tx
		}
		return badinput.Env{
			Store: store,
			Begin: func() badinput.Tx {
				tx := begin(pool, false)
				return badinput.Tx{Handle: sqldb.Tx(tx), Commit: tx.Commit, Rollback: tx.Rollback}
			},
			Age: func(d time.Duration) { dbtest.SQL{DB: pool}.Age(t, d) },
			Broken: map[string]func() db.Tx{
				"closed": func() db.Tx {
					tx := begin(pool, false)
					_ = tx.Rollback()
					return sqldb.Tx(tx)
				},
				"aborted": func() db.Tx {
					tx := begin(pool, false)
					_, _ = tx.Exec("SELECT 1/0")
					return sqldb.Tx(tx)
				},
				"read-only":           func() db.Tx { return sqldb.Tx(begin(pool, true)) },
				"of another database": func() db.Tx { return sqldb.Tx(begin(beside, false)) },
			},
			Foreign: map[string]db.Tx{
				"of another driver": foreign{},
				"of nothing":        sqldb.Tx(nil),
				"a nil *BoxTx":      (*sqldb.BoxTx)(nil),
				"an empty BoxTx":    &sqldb.BoxTx{},
			},
		}
	})
}

type foreign struct{}

func (foreign) FencepostTx() {}
