package sender

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// What no repetition mends ends Run at once, and says what to do.
func TestRunRefusesAWrongFile(t *testing.T) {
	t.Parallel()
	r := fileRig(t)
	bare, err := sql.Open("sqlite", r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	given, err := sqlitedb.New(bare, sqlitedb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	unmigrated, err := sqlitedb.Open(empty, sqlitedb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer unmigrated.Close()
	for says, c := range map[string]struct {
		store db.Store
		is    error
	}{
		"_pragma=busy_timeout(10000)":              {given, db.ErrDenied},
		"`fencepost migrate --dsn sqlite:" + empty: {unmigrated, db.ErrNoSchema},
	} {
		box, err := outbox.New(c.store, outbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		shop, err := box.Consumer("c", "t", outbox.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(box, shop, Config{Handlers: doing(succeed)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Run(ctx); !errors.Is(err, c.is) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v", err)
		}
	}
}
