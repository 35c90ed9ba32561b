package pgxdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

// In every way that pgx sends a statement, which share the suite but for its own default.
// Shows: S2.14 S4.22
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode        pgx.QueryExecMode
		part, parts int
	}{
		{pgx.QueryExecModeCacheStatement, 0, 1},
		{pgx.QueryExecModeSimpleProtocol, 0, 4},
		{pgx.QueryExecModeExec, 1, 4},
		{pgx.QueryExecModeCacheDescribe, 2, 8},
		{pgx.QueryExecModeDescribeExec, 6, 8},
	} {
		t.Run(c.mode.String(), func(t *testing.T) {
			dbtest.RunPart(t, c.part, c.parts, func(t *testing.T) dbtest.Harness { return harness(t, pgtest.New(t), c.mode, "") })
		})
	}
	t.Run("another schema", func(t *testing.T) {
		dbtest.RunPart(t, 3, 4, func(t *testing.T) dbtest.Harness {
			return harness(t, pgtest.Empty(t), pgx.QueryExecModeCacheStatement, "Fence-Post")
		})
	})
}

// harness opens two stores, each with a pool of its own, over one database, which gets hostile defaults and, when its schema is not the
// default one, is migrated.
func harness(t *testing.T, dsn string, mode pgx.QueryExecMode, name string) dbtest.Harness {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = mode
	open := func() (*pgxpool.Pool, *pgxdb.Store) {
		pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				pool.Close() // waits for every connection
			}()
			select {
			case <-closed:
			case <-time.After(10 * time.Second):
				t.Errorf("%d connections were not given back", pool.Stat().AcquiredConns())
			}
		})
		store, err := pgxdb.New(pool, pgxdb.Config{Schema: name, Listen: config.ConnConfig})
		if err != nil {
			t.Fatal(err)
		}
		return pool, store
	}
	beside := dbtest.SQL{DB: dbtest.Hostile(t, dsn), Schema: name}
	if mode == pgx.QueryExecModeSimpleProtocol {
		config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on" // pgx itself insists on it
	}
	pool, store := open()
	_, second := open()
	if name != "" {
		if err := schema.Up(t.Context(), beside.DB, schema.Config{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return dbtest.Harness{
		Store:  store,
		Second: second,
		Begin: func(t testing.TB) (db.Tx, func() error, func() error) {
			ctx := context.WithoutCancel(t.Context())
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return pgxdb.Tx(tx), func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
		},
		Age:   beside.Age,
		Dump:  beside.Dump,
		Reset: beside.Reset,
	}
}
