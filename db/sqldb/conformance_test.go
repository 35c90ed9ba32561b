package sqldb_test

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "github.com/lib/pq"              // the driver "postgres"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// In every way that the driver is used, which share the suite but for the usual one.
// Shows: S2.14 S4.22
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, driver, options string
		config                sqldb.Config
		part, parts           int
	}{
		{name: "lib pq", driver: "postgres", parts: 1},
		{name: "lib pq, unnamed", driver: "postgres", options: "&binary_parameters=yes", config: sqldb.Config{Statements: sqldb.Unnamed}, part: 0, parts: 4},
		{name: "pgx stdlib", driver: "pgx", part: 1, parts: 4},
		{name: "pgx stdlib, in text", driver: "pgx", options: "&default_query_exec_mode=exec", part: 2, parts: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			dbtest.RunPart(t, c.part, c.parts, func(t *testing.T) dbtest.Harness { return harness(t, c.driver, pgtest.New(t), c.options, c.config) })
		})
	}
	t.Run("another schema", func(t *testing.T) {
		dbtest.RunPart(t, 3, 4, func(t *testing.T) dbtest.Harness {
			return harness(t, "postgres", pgtest.Empty(t), "", sqldb.Config{Schema: "Fence-Post"})
		})
	})
}

// harness opens two stores, each with a pool of its own, over one database, which gets hostile defaults and, when its schema is not the
// default one, is migrated.
func harness(t *testing.T, driver, dsn, options string, config sqldb.Config) dbtest.Harness {
	t.Helper()
	beside := dbtest.SQL{DB: dbtest.Hostile(t, dsn), Schema: config.Schema}
	config.ListenDSN = dsn
	dsn += options
	open := func() (*sql.DB, *sqldb.Store) {
		pool, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		pool.SetMaxIdleConns(8)
		t.Cleanup(func() {
			if n := pool.Stats().InUse; n != 0 {
				t.Errorf("%d connections were not given back", n)
			}
			pool.Close()
		})
		store, err := sqldb.New(pool, config)
		if err != nil {
			t.Fatal(err)
		}
		return pool, store
	}
	pool, store := open()
	_, second := open()
	if config.Schema != "" {
		if err := schema.Up(t.Context(), pool, schema.Config{Name: config.Schema}); err != nil {
			t.Fatal(err)
		}
	}
	return dbtest.Harness{
		Store:  store,
		Second: second,
		Begin: func(t testing.TB) (db.Tx, func() error, func() error) {
			tx, err := pool.BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return sqldb.Tx(tx), tx.Commit, tx.Rollback
		},
		Age:   beside.Age,
		Dump:  beside.Dump,
		Reset: beside.Reset,
	}
}
