package pgxdb_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/badinput"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	badinput.Run(t, func(t *testing.T) badinput.Env {
		ctx := context.WithoutCancel(t.Context())
		var sent counter
		pool, beside := countedPool(t, pgtest.New(t), &sent), countedPool(t, pgtest.New(t), nil)
		store, err := pgxdb.New(pool, pgxdb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		begin := func(pool *pgxpool.Pool, options pgx.TxOptions) pgx.Tx {
			tx, err := pool.BeginTx(ctx, options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback(ctx) })
			return tx
		}
		age := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { age.Close() })
		if _, err := beside.Exec(ctx, "DROP SCHEMA outbox CASCADE"); err != nil {
			t.Fatal(err)
		}
		return badinput.Env{
			Store: store,
			Begin: func() badinput.Tx {
				tx := begin(pool, pgx.TxOptions{})
				return badinput.Tx{
					Handle:   pgxdb.Tx(tx),
					Commit:   func() error { return tx.Commit(ctx) },
					Rollback: func() error { return tx.Rollback(ctx) },
				}
			},
			Age:  func(d time.Duration) { dbtest.SQL{DB: age}.Age(t, d) },
			Sent: func() int { return int(sent.Load()) },
			Broken: map[string]func() db.Tx{
				"closed": func() db.Tx {
					tx := begin(pool, pgx.TxOptions{})
					_ = tx.Rollback(ctx)
					return pgxdb.Tx(tx)
				},
				"aborted": func() db.Tx {
					tx := begin(pool, pgx.TxOptions{})
					_, _ = tx.Exec(ctx, "SELECT 1/0")
					return pgxdb.Tx(tx)
				},
				"read-only":           func() db.Tx { return pgxdb.Tx(begin(pool, pgx.TxOptions{AccessMode: pgx.ReadOnly})) },
				"of another database": func() db.Tx { return pgxdb.Tx(begin(beside, pgx.TxOptions{})) },
			},
			Foreign: map[string]db.Tx{
				"of another driver": foreign{},
				"of nothing":        pgxdb.Tx(nil),
				"a nil *BoxTx":      (*pgxdb.BoxTx)(nil),
				"an empty BoxTx":    &pgxdb.BoxTx{},
				"a nil *pgxpool.Tx": pgxdb.Tx((*pgxpool.Tx)(nil)),
			},
		}
	})
}

type foreign struct{}

func (foreign) FencepostTx() {}

func countedPool(t *testing.T, dsn string, sent *counter) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if sent != nil {
		config.ConnConfig.Tracer = sent
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// counter counts statements.
type counter struct{ atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.Add(1)
	return ctx
}
func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.Add(1)
	return ctx
}
func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
