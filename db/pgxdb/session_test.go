package pgxdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// one opens a pool of one connection, and a store on it.
func one(t *testing.T, dsn string, mode pgx.QueryExecMode) (*pgxpool.Pool, *pgxdb.Store) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns, config.ConnConfig.DefaultQueryExecMode = 1, mode
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return pool, store
}

// pgx takes over the client_encoding of a role: in any but UTF8 "é" would be stored as two characters, and read by lib/pq as those. It is
// refused before any statement, so a caller's transaction goes on.
func TestAnotherClientEncodingIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	dbtest.Hostile(t, dsn, "client_encoding = 'LATIN1'")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		pool, store := one(t, dsn, mode)
		_, own := store.ReadVersion(t.Context())
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, callers := store.FindKeys(t.Context(), pgxdb.Tx(tx), db.FindKeysParams{})
		for _, err := range []error{own, callers} {
			if !errors.Is(err, db.ErrEncoding) || !strings.Contains(err.Error(), "LATIN1") {
				t.Errorf("%v: %v", mode, err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// What an application or a migration does to a session costs no operation.
func TestVanishedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe} {
		pool, store := one(t, pgtest.New(t), mode)
		for _, act := range dbtest.Vanish {
			if _, err := pool.Exec(t.Context(), act, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			if rows, err := store.ListPauses(t.Context(), db.ListPausesParams{AllTenants: true}); err != nil || len(rows) != 0 {
				t.Errorf("%v, after %s: %v, %v", mode, act, rows, err)
			}
		}
	}
}
