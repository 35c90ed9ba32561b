package pgxdb_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// The store's own transactions are READ COMMITTED whatever the role's default: with a serializable one, eight workers drain 5,000 messages, and
// the server refuses no statement, not even one that the store would repeat.
// Shows: S1.39
func TestSerializableDefault(t *testing.T) {
	t.Parallel()
	const workers, total = 8, 5_000
	config, err := pgxpool.ParseConfig(serializable(t, pgtest.New(t)))
	if err != nil {
		t.Fatal(err)
	}
	var refused refusals
	config.ConnConfig.Tracer = &refused
	config.MaxConns = workers
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var isolation string
	if err := pool.QueryRow(t.Context(), "SHOW transaction_isolation").Scan(&isolation); err != nil || isolation != "serializable" {
		t.Fatalf("the default is %q, %v", isolation, err)
	}
	enqueueDue(t, pool, store, total)
	var settled atomic.Int64
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				held, err := leaseBatch(t.Context(), store, 1, 20)
				if err == nil && len(held.ids) == 0 {
					return
				}
				if err == nil {
					err = held.settle(t.Context(), store)
				}
				if err != nil {
					t.Errorf("%v (ErrRetry: %t)", err, errors.Is(err, db.ErrRetry))
					return
				}
				settled.Add(int64(len(held.ids)))
			}
		})
	}
	running.Wait()
	if settled.Load() != total || refused.Load() != 0 {
		t.Errorf("settled %d of %d; %d statements were refused", settled.Load(), total, refused.Load())
	}
}

// serializable makes the isolation the default of our role in the database.
func serializable(t *testing.T, dsn string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	_, err = conn.Exec(t.Context(), "ALTER ROLE CURRENT_USER IN DATABASE "+database+" SET default_transaction_isolation = serializable")
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// refusals counts what the server refused for a serialization failure, below the store's own repeats.
type refusals struct{ atomic.Int64 }

var _ pgx.BatchTracer = (*refusals)(nil)

func (r *refusals) count(err error) {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "40001" {
		r.Add(1)
	}
}

func (r *refusals) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (r *refusals) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	r.count(data.Err)
}
func (r *refusals) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (r *refusals) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.count(data.Err)
}
func (r *refusals) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	r.count(data.Err)
}
