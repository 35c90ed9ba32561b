package metrics

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// C78: status and a scrape counted everything each time. Beside half a million settled messages (in the full run five million), a tenth of
// them dead, a refresh reads the cap and the pending ones, and a scrape nothing at all.
func TestC78CountingStaysCheap(t *testing.T) {
	t.Parallel()
	const pending, refreshes = 1_000, 10
	settled := 500_000
	if os.Getenv("FENCEPOST_FULL") != "" {
		settled = 5_000_000
	}
	dsn := pgtest.New(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	// Their messages are left out: nothing here reads the table.
	_, err = pool.Exec(t.Context(), `
INSERT INTO outbox.settlement (message_id, outcome, cause, reason, epoch, attempt, replays, settled_at)
SELECT 1000000 + i, CASE WHEN i % 10 = 0 THEN 'dead' ELSE 'delivered' END, CASE WHEN i % 10 = 0 THEN 'permanent' ELSE '' END,
    CASE WHEN i % 10 = 0 THEN 'closed' ELSE '' END, 1, 1, 0, now() - i * interval '1 millisecond'
FROM generate_series(1, $1::integer) AS i`, settled)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	observer, err := New(registry, config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, registry: registry}
	if b.box, err = outbox.New(store, outbox.Config{Observer: observer}); err != nil {
		t.Fatal(err)
	}
	err = pgxdb.InTx(t.Context(), pool, b.box, func(tx *pgxdb.BoxTx) error {
		effects := make([]outbox.Effect, pending)
		for i := range effects {
			effects[i] = effect("push", fmt.Sprint(i))
			effects[i].Tenant = fmt.Sprint(i % 10)
		}
		_, err := b.box.EnqueueMany(t.Context(), tx, effects)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "VACUUM ANALYZE outbox.settlement, outbox.queue"); err != nil {
		t.Fatal(err)
	}

	var took []time.Duration
	for range refreshes {
		began := time.Now()
		b.measure()
		took = append(took, time.Since(began))
	}
	pool.Close() // a session reports what it read at its end; and a scrape needs no database

	if got := b.values("fencepost_undelivered_messages", "state"); got["dead"] != outbox.CountCap {
		t.Errorf("undelivered %v", got)
	}
	if got := b.values("fencepost_queue_messages", "state"); got["due"] != pending {
		t.Errorf("queue %v", got)
	}
	slices.Sort(took)
	t.Logf("%d refreshes beside %d settled messages: median %v, longest %v", refreshes, settled, took[refreshes/2], took[refreshes-1])
	if took[0] > time.Second { // of liveness: docs/benchmarks.md has measurements
		t.Errorf("the fastest refresh took %v", took[0])
	}
	for table, bound := range map[string]int{"settlement": outbox.CountCap + 100, "queue": 3 * pending} {
		entries, rows := reads(t, dsn, table, refreshes)
		t.Logf("a refresh reads %d entries of the indexes of %s", entries/refreshes, table)
		if entries > refreshes*bound || rows > 0 {
			t.Errorf("%d refreshes read %d entries of the indexes of %s and %d rows without any; want at most %d and none",
				refreshes, entries, table, rows, refreshes*bound)
		}
	}
}

// reads gives the server's counts of what was read of a table, by its indexes and without, which come a moment late: it waits until they show
// as many scans of one index as are wanted.
func reads(t *testing.T, dsn, table string, scans int) (entries, rows int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for deadline, seen := time.Now().Add(30*time.Second), 0; seen < scans && time.Now().Before(deadline); {
		err := conn.QueryRow(t.Context(), `
SELECT max(i.idx_scan), sum(i.idx_tup_read), max(t.seq_tup_read)
FROM pg_stat_user_indexes AS i JOIN pg_stat_user_tables AS t USING (relid)
WHERE i.schemaname = 'outbox' AND i.relname = $1`, table).Scan(&seen, &entries, &rows)
		if err != nil {
			t.Fatal(err)
		}
	}
	return entries, rows
}
