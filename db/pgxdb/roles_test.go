package pgxdb_test

import (
	"context"
	"database/sql"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// parted is a store whose parts run each under the role that is for it.
type parted struct {
	db.Enqueuer
	db.Leaser
	db.Settler
	db.Operator
	db.Purger
	db.Inspector
	db.Worker
	db.Doctor
	db.Appender
	db.Streamer
	db.Claimer
	db.Batcher
	db.Transactor
	remainder

	operator, viewer db.Store
}

type remainder interface {
	db.Notifier
	Schema() string
	SchemaRange() (oldest, newest int64)
}

// ShowMessage shows content, which viewers do not see.
func (p parted) ShowMessage(ctx context.Context, arg db.ShowMessageParams) ([]db.ShowMessageRow, error) {
	return p.operator.ShowMessage(ctx, arg)
}

// ListBatchRows shows results, which viewers do not see.
func (p parted) ListBatchRows(ctx context.Context, arg db.ListBatchRowsParams) ([]db.ListBatchRowsRow, error) {
	return p.operator.ListBatchRows(ctx, arg)
}

// CountBatch and ListBatches show no content.
func (p parted) CountBatch(ctx context.Context, arg db.CountBatchParams) ([]db.CountBatchRow, error) {
	return p.viewer.CountBatch(ctx, arg)
}

func (p parted) ListBatches(ctx context.Context, arg db.ListBatchesParams) ([]db.ListBatchesRow, error) {
	return p.viewer.ListBatches(ctx, arg)
}

// The suite passes with each part under its own role: nobody needs more than schema.Grants gives him.
func TestC67ConformanceUnderRoles(t *testing.T) {
	t.Parallel()
	dbtest.RunPart(t, 2, 3, func(t *testing.T) dbtest.Harness {
		dsn := pgtest.New(t)
		as := pgtest.Roles(t, dsn)
		pool := func(dsn string) *pgxpool.Pool {
			pool, err := pgxpool.New(context.WithoutCancel(t.Context()), dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			return pool
		}
		store := func(pool *pgxpool.Pool) *pgxdb.Store {
			store, err := pgxdb.New(pool, pgxdb.Config{Listen: pool.Config().ConnConfig})
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
		producers, both := pool(as("producer")), pool(bothOf(t, dsn, as))
		open := func() db.Store {
			producer, sender := store(producers), store(pool(as("sender")))
			operator, viewer := store(pool(as("operator"))), store(pool(as("viewer")))
			return parted{
				Enqueuer: producer, Leaser: sender, Settler: sender, Operator: operator, Purger: store(pool(as("janitor"))),
				Inspector: viewer, Doctor: viewer, Worker: sender, remainder: sender, operator: operator, viewer: viewer,
				Appender: producer, Streamer: sender, Claimer: producer, Batcher: producer, Transactor: producer,
			}
		}
		beside := dbtest.SQL{}
		var err error
		if beside.DB, err = sql.Open("pgx", dsn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { beside.DB.Close() })
		return dbtest.Harness{
			Store:     open(),
			Second:    open(),
			Begin:     beginning(producers),
			BeginBoth: beginning(both),
			Age:       beside.Age,
			Dump:      beside.Dump,
			Reset:     beside.Reset,
		}
	})
}

func beginning(pool *pgxpool.Pool) func(testing.TB) (db.Tx, func() error, func() error) {
	return func(t testing.TB) (db.Tx, func() error, func() error) {
		ctx := context.WithoutCancel(t.Context())
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return pgxdb.Tx(tx), func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
	}
}

// bothOf makes a role that is a producer and a sender, as a process is that performs what it enqueues, and gives the URL as it.
func bothOf(t *testing.T, dsn string, as func(role string) string) string {
	t.Helper()
	named := func(role string) string {
		u, err := url.Parse(as(role))
		if err != nil {
			t.Fatal(err)
		}
		return pgx.Identifier{u.Query().Get("role")}.Sanitize()
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer admin.Close()
		if _, err := admin.Exec("DROP ROLE " + named("both")); err != nil {
			t.Error(err)
		}
	})
	if _, err := admin.Exec("CREATE ROLE " + named("both") + "; GRANT " + named("producer") + ", " + named("sender") + " TO " + named("both")); err != nil {
		t.Fatal(err)
	}
	return as("both")
}

// A member of the role that owns the tables may do what the owner may, whether it inherits that or sets the role.
func TestC67MemberOfTheOwner(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	pool, store := one(t, pgtest.Roles(t, dsn)("sender"), pgx.QueryExecModeCacheStatement)
	admin, _ := one(t, dsn, pgx.QueryExecModeCacheStatement)
	var role, owner string
	const names = "SELECT current_user, tableowner FROM pg_tables WHERE schemaname = 'outbox' AND tablename = 'queue'"
	if err := pool.QueryRow(t.Context(), names).Scan(&role, &owner); err != nil {
		t.Fatal(err)
	}
	role, owner = pgx.Identifier{role}.Sanitize(), pgx.Identifier{owner}.Sanitize()
	for _, step := range []struct {
		statement string
		owner     bool
	}{{"SELECT 1", false}, {"GRANT " + owner + " TO " + role, true}, {"ALTER ROLE " + role + " NOINHERIT", true}} {
		if _, err := admin.Exec(t.Context(), step.statement); err != nil {
			t.Fatal(err)
		}
		rows, err := store.CheckRole(t.Context(), db.CheckRoleParams{SchemaName: "outbox"})
		if err != nil || rows[0].Owner != step.owner || rows[0].Superuser {
			t.Errorf("after %s: %+v, %v", step.statement, rows, err)
		}
	}
}
