package sqldb_test

import (
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// limited opens a pool of so many connections, and a store on it.
func limited(t *testing.T, driver, dsn string, connections int) (*sql.DB, *sqldb.Store) {
	t.Helper()
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(connections)
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return pool, store
}

// Through pgx a role's client_encoding would turn "é" into two characters, which lib/pq would read as those. lib/pq sets its own.
func TestAnotherClientEncodingIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	dbtest.Hostile(t, dsn, "client_encoding = 'LATIN1'")
	for driver, want := range map[string]error{"pgx": db.ErrEncoding, "postgres": nil} {
		for _, callers := range []bool{true, false} {
			pool, store := limited(t, driver, dsn, 1)
			var err error
			if callers {
				err = sqldb.InTx(t.Context(), pool, nil, func(tx *sqldb.BoxTx) error {
					_, err := store.FindKeys(t.Context(), tx, db.FindKeysParams{})
					_, after := tx.ExecContext(t.Context(), "SELECT 1")
					return errors.Join(err, after)
				})
			} else {
				_, err = store.ReadVersion(t.Context())
			}
			if !errors.Is(err, want) || want != nil && (!strings.Contains(err.Error(), "LATIN1") || db.Vanished(err)) {
				t.Errorf("%s, of a caller %t: %v", driver, callers, err)
			}
		}
	}
}

// What an application or a migration does to a session costs no operation, neither that which finds out nor one beside it.
func TestVanishedStatements(t *testing.T) {
	t.Parallel()
	const connections = 3
	for _, driver := range []string{"pgx", "postgres"} {
		pool, store := limited(t, driver, pgtest.New(t), connections)
		for _, act := range dbtest.Vanish {
			var all [connections]*sql.Conn
			for i := range all {
				var err error
				if all[i], err = pool.Conn(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := all[i].ExecContext(t.Context(), act); err != nil {
					t.Fatal(err)
				}
			}
			for _, conn := range all {
				conn.Close()
			}
			var running sync.WaitGroup
			for range 4 * connections {
				running.Go(func() {
					if _, err := store.ListPauses(t.Context(), db.ListPausesParams{AllTenants: true}); err != nil {
						t.Errorf("%s, after %s: %v", driver, act, err)
					}
				})
			}
			running.Wait()
		}
	}
}
