package sender

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// fileRig is a rig on a file of SQLite.
func fileRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, dsn: filepath.Join(t.TempDir(), "sender.db")}
	r.beside = dbtest.SQL{DB: r.file().DB(), SQLite: true}
	if err := schema.Up(t.Context(), r.beside.DB, schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) file() *sqlitedb.Store {
	r.Helper()
	store, err := sqlitedb.Open(r.dsn, sqlitedb.Config{Synchronous: sqlitedb.Normal}) // no power is lost
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { store.Close() })
	return store
}

// useFile opens the file as a process does.
func useFile(r *rig, _ setup) (db.Store, inTx, query, begin) {
	store := r.file()
	return store, func(ctx context.Context, box *outbox.Box, do func(db.Tx) error) error {
			return sqlitedb.InTx(ctx, store, box, func(tx *sqlitedb.BoxTx) error { return do(tx) })
		}, func(ctx context.Context, text string, inTx bool) error {
			if !inTx {
				_, err := store.DB().ExecContext(ctx, text)
				return err
			}
			return sqlitedb.InTx(ctx, store, nil, func(tx *sqlitedb.BoxTx) error {
				_, err := tx.ExecContext(ctx, text)
				return err
			})
		}, func(t testing.TB) (db.Tx, func() error, func() error) {
			tx, err := store.DB().BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return sqlitedb.Tx(tx), tx.Commit, tx.Rollback
		}
}
