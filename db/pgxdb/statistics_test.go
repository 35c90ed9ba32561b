package pgxdb

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// C52: the mix of states changes under a cached plan. A lease finds its messages over the partial index, and reads no more pages than the
// messages it takes account for, whatever was analysed when.
func TestC52PlansThatFlipWithTheStatistics(t *testing.T) {
	t.Parallel()
	scale := 10
	if os.Getenv("FENCEPOST_FULL") != "" {
		scale = 1
	}
	for _, mix := range []struct {
		name string
		fill string // $1 is the number of messages
		size int
		due  int // how many a lease of 100 gets
	}{
		{
			name: "analysed empty, then all pending", size: 1_000_000 / scale, due: 100,
			fill: "INSERT INTO outbox.queue (message_id, consumer, target, kind) SELECT id, consumer, target, kind FROM outbox.message",
		},
		{
			name: "delivered, and ten due", size: 3_000_000 / scale, due: 10,
			fill: `WITH due AS (
			    INSERT INTO outbox.queue (message_id, consumer, target, kind) SELECT id, consumer, target, kind FROM outbox.message WHERE id <= 10
			) INSERT INTO outbox.settlement (message_id, outcome, epoch, attempt, replays) SELECT id, 'delivered', 1, 1, 0 FROM outbox.message WHERE id > 10`,
		},
		{
			name: "far in the future, and ten due", size: 1_000_000 / scale, due: 10,
			fill: `INSERT INTO outbox.queue (message_id, consumer, target, kind, due_at)
			SELECT id, consumer, target, kind, now() + CASE WHEN id <= 10 THEN interval '0' ELSE interval '1 year' END FROM outbox.message`,
		},
	} {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.New(t)
			conn := connect(t, dsn)
			pool := newPool(t, dsn+"&pool_max_conns=1")
			store, err := New(pool, Config{})
			if err != nil {
				t.Fatal(err)
			}
			exec(t, conn, "ANALYZE outbox.message, outbox.queue, outbox.settlement")
			params := planParams["LeaseDue"].(gen.LeaseDueParams)
			params.Kinds, params.Tenants = []string{"k", "k"}, []string{"", "none"}
			// Enough runs on the empty table for the server to settle on a plan.
			for range 10 {
				if _, err := store.LeaseDue(t.Context(), db.LeaseDueParams(params)); err != nil {
					t.Fatal(err)
				}
			}
			exec(t, conn, `INSERT INTO outbox.message (id, consumer, target, kind, key, digest)
				SELECT i, 'c', 'g', 'k', i::text, decode(repeat('00', 32), 'hex') FROM generate_series(1::bigint, $1) AS i`, mix.size)
			exec(t, conn, mix.fill)

			for _, mode := range []string{"auto", "force_generic_plan"} {
				plan, buffers := analyse(t, conn, mode, params)
				checkIndexed(t, plan)
				if !slices.Contains(plan.indexes(), "queue_due") {
					t.Errorf("%s: the lease does not use its index:\n%s", mode, plan.shape())
				}
				// A message costs some 20 page reads for its index entries, its rows and the lease's new version; 40 leave room.
				if limit := 500 + 40*mix.due; buffers > limit {
					t.Errorf("%s: %d buffers for %d messages, more than %d", mode, buffers, mix.due, limit)
				}
			}
			rows, err := store.LeaseDue(t.Context(), db.LeaseDueParams(params))
			if err != nil {
				t.Fatal(err)
			}
			if granted := len(rows) - 1; granted != mix.due {
				t.Errorf("the cached plan granted %d messages, not %d", granted, mix.due)
			}
		})
	}
}

// analyse runs the lease in a transaction that is rolled back and returns its plan and the buffers it touched.
func analyse(t *testing.T, conn *pgx.Conn, mode string, params gen.LeaseDueParams) (*node, int) {
	t.Helper()
	exec(t, conn, "BEGIN")
	defer exec(t, conn, "ROLLBACK")
	exec(t, conn, "SET LOCAL plan_cache_mode = "+mode)
	for _, setting := range []string{"enable_seqscan", "enable_bitmapscan", "enable_sort", "jit"} {
		exec(t, conn, "SET LOCAL "+setting+" = off")
	}
	var sent recorder
	gen.New().LeaseDue(context.Background(), &sent, params)
	exec(t, conn, "PREPARE analysed AS "+trimmed(sent.sql))
	defer exec(t, conn, "DEALLOCATE analysed")
	var document string
	execute := fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE analysed(%s)", literals(sent.args))
	if err := conn.QueryRow(t.Context(), execute).Scan(&document); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			node
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(document), &plans); err != nil {
		t.Fatal(err)
	}
	return &plans[0].Plan.node, plans[0].Plan.Hit + plans[0].Plan.Read
}

func newPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Planning a lease costs more than leasing a few messages does, so it is done once for each session.
func TestALeaseIsPlannedOnce(t *testing.T) {
	t.Parallel()
	pool := newPool(t, pgtest.New(t)+"&pool_max_conns=1")
	store, err := New(pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	params := planParams["LeaseDue"].(gen.LeaseDueParams)
	for range 10 {
		if _, err := store.LeaseDue(t.Context(), db.LeaseDueParams(params)); err != nil {
			t.Fatal(err)
		}
	}
	var cached, planned int
	err = pool.QueryRow(t.Context(), "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE starts_with(statement, $1)", "-- name: LeaseDue :").
		Scan(&cached, &planned)
	if err != nil || cached != 10 || planned != 0 {
		t.Errorf("of 10 leases %d used the cached plan and %d were planned anew, %v", cached, planned, err)
	}
}
