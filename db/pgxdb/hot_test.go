package pgxdb_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// Leases and renewals are heap-only updates: they touch no index, and a page reclaims the old versions by itself. A worker leases 5,000
// messages (in the full run four of them 100,000), renews each lease twice and settles; the server's counters tell. While another transaction
// of the server, in whatever database, waits for a processor, snapshots keep old versions: one worker on a server of its own without autovacuum
// makes the share a matter of the schema alone.
func TestLeasesAndRenewalsAreHOT(t *testing.T) {
	t.Parallel()
	total, parallel := 5_000, 1
	if os.Getenv("FENCEPOST_FULL") != "" {
		total, parallel = 100_000, 4
	}
	dsn := pgtest.Alone(t)
	pool, err := pgxpool.New(t.Context(), dsn+"&pool_max_conns=4")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()"} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	enqueueDue(t, pool, store, total)
	var workers sync.WaitGroup
	for i := range parallel {
		workers.Go(func() {
			if err := leaseRenewSettle(t.Context(), store, fmt.Sprintf("notification-sender-7d9f8b6c5d-x2x9%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	pool.Close() // a session reports what it counted at its end

	updates, hot := countUpdates(t, dsn, 3*total)
	t.Logf("%d of %d updates HOT", hot, updates)
	if updates != 3*total || hot*100 < updates*95 {
		t.Errorf("%d of %d updates were HOT; want at least 95 %% of %d", hot, updates, 3*total)
	}
}

// leaseRenewSettle works until nothing is due.
func leaseRenewSettle(ctx context.Context, store *pgxdb.Store, name string) error {
	worker, err := store.RegisterWorker(ctx, db.RegisterWorkerParams{Name: name, Host: "ip-10-0-17-203.eu-central-1.compute.internal"})
	if err != nil {
		return err
	}
	for {
		held, err := leaseBatch(ctx, store, worker[0], 100)
		if err != nil || len(held.ids) == 0 {
			return err
		}
		for range 2 {
			if err := held.renew(ctx, store); err != nil {
				return err
			}
		}
		if err := held.settle(ctx, store); err != nil {
			return err
		}
	}
}

// countUpdates reads the server's counters of the queue, which come a moment late: it waits until they show what is wanted.
func countUpdates(t *testing.T, dsn string, want int) (updates, hot int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for deadline := time.Now().Add(30 * time.Second); updates < want && time.Now().Before(deadline); {
		err := conn.QueryRow(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'outbox.queue'::regclass").Scan(&updates, &hot)
		if err != nil {
			t.Fatal(err)
		}
	}
	return updates, hot
}
