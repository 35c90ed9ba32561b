package janitor_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A rig is a box on PostgreSQL whose statements may run 5 s.
type rig struct {
	*testing.T
	pool *pgxpool.Pool
	box  *outbox.Box

	mu              sync.Mutex
	steps, timeouts int
	longest         time.Duration
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.New(t)+"&statement_timeout=5s&pool_max_conns=6")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, pool: pool}
	if r.box, err = outbox.New(watched{store, r}, outbox.Config{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// watched is a store that keeps the longest and the failed of the statements that purge delivered messages.
type watched struct {
	db.Store
	rig *rig
}

func (w watched) PurgeDelivered(ctx context.Context, arg db.PurgeDeliveredParams) ([]db.PurgeDeliveredRow, error) {
	began := time.Now()
	rows, err := w.Store.PurgeDelivered(ctx, arg)
	w.rig.mu.Lock()
	defer w.rig.mu.Unlock()
	w.rig.steps++
	w.rig.longest = max(w.rig.longest, time.Since(began))
	if errors.Is(err, db.ErrTimeout) {
		w.rig.timeouts++
	}
	return rows, err
}

func (r *rig) count(sql string) (n int) {
	r.Helper()
	if err := r.pool.QueryRow(r.Context(), sql).Scan(&n); err != nil {
		r.Fatal(err)
	}
	return n
}

// deliver fills in n messages delivered 8 days ago, and n delivered now, alternating.
func (r *rig) deliver(n int) {
	r.Helper()
	conn, err := r.pool.Acquire(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{
		"SET statement_timeout = 0",
		`INSERT INTO outbox.message (consumer, target, kind, key, digest, payload)
			SELECT 'wallets', 'ledger', 'charge', 'k' || n, sha256('')::bytea, convert_to(repeat('x', 200), 'UTF8') FROM generate_series(1, $1) AS n`,
		`INSERT INTO outbox.settlement (message_id, outcome, attempt, epoch, replays, settled_at)
			SELECT id, 'delivered', 1, 1, 0, now() - CASE WHEN id % 2 = 0 THEN interval '8 days' ELSE interval '0' END FROM outbox.message`,
		"VACUUM ANALYZE outbox.message, outbox.settlement",
		"RESET statement_timeout",
	} {
		var args []any
		if slices.Contains([]byte(sql), '$') {
			args = []any{2 * n}
		}
		if _, err := conn.Exec(r.Context(), sql, args...); err != nil {
			r.Fatal(err)
		}
	}
}

// A janitor that finds another at work does nothing, and is neither a success nor a failure.
// Shows: S3.23
func TestOneJanitorPurgesAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deliver(10)
	j, err := janitor.New(r.box, janitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended('fencepost janitor outbox', 0))"); err != nil {
		t.Fatal(err)
	}
	if report, err := j.RunOnce(t.Context()); report != (janitor.Report{Busy: true}) || err != nil || !j.LastSuccess().IsZero() {
		t.Errorf("beside another: %+v, %v, last success %v", report, err, j.LastSuccess())
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report, err := j.RunOnce(t.Context()); report.Purged.Total() != 10 || report.Busy || err != nil || j.LastSuccess().IsZero() {
		t.Errorf("alone: %+v, %v, last success %v", report, err, j.LastSuccess())
	}
}

// A million old messages among a million kept go in steps, none of which comes near the statement timeout, while a worker leases and settles;
// a janitor that is killed between two steps loses nothing, and two that go on after it leave nothing behind.
// Shows: S3.21
func TestC70PurgeInSteps(t *testing.T) {
	t.Parallel()
	n := 100_000
	if os.Getenv("FENCEPOST_FULL") != "" {
		n = 1_000_000
	}
	r := newRig(t)
	r.deliver(n)
	consumer, err := r.box.Consumer("wallets", "ledger", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var before, beside []time.Duration
	for range 200 {
		before = append(before, r.perform(consumer))
	}
	purged := make(chan struct{})
	go func() {
		defer close(purged)
		killed, kill := context.WithTimeout(t.Context(), time.Second)
		defer kill()
		if n := r.purge(killed, "the one that was killed"); n == 0 {
			t.Error("the one that was killed had done nothing")
		}
		if r.count("SELECT count(*) FROM outbox.settlement WHERE settled_at < now() - interval '7 days'") == 0 {
			t.Error("the one that was killed had done all")
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { r.purge(t.Context(), "one of two") })
		}
		both.Wait()
	}()
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for working := true; working; {
		select {
		case <-purged:
			working = false
		case <-pace.C:
			beside = append(beside, r.perform(consumer))
		}
	}

	if old := r.count("SELECT count(*) FROM outbox.settlement WHERE settled_at < now() - interval '7 days'"); old != 0 {
		t.Errorf("%d old messages were left", old)
	}
	want := n + len(before) + len(beside)
	if kept := r.count("SELECT count(*) FROM outbox.settlement"); kept != want {
		t.Errorf("%d of %d younger ones were kept", kept, want)
	}
	if odd := r.count(`SELECT count(*) FROM outbox.message AS m FULL JOIN outbox.settlement AS s ON s.message_id = m.id
		WHERE m.id IS NULL OR s.message_id IS NULL`); odd != 0 {
		t.Errorf("%d messages without a settlement, or the other way round", odd)
	}
	if r.timeouts > 0 || r.longest > 5*time.Second {
		t.Errorf("of %d steps %d were ended by the server's timeout of 5 s; the longest took %v", r.steps, r.timeouts, r.longest)
	}
	t.Logf("%d steps, the longest %v", r.steps, r.longest)
	t.Logf("lease p95 %v before, %v beside the purge (%d leases)", p95(before), p95(beside), len(beside))
}

// purge runs a janitor until nothing is old, or ctx ends, and says how much it removed.
func (r *rig) purge(ctx context.Context, who string) (purged int) {
	j, err := janitor.New(r.box, janitor.Config{Timeout: time.Minute})
	if err != nil {
		r.Error(err)
		return 0
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		report, err := j.RunOnce(ctx)
		purged += report.Purged.Delivered
		switch {
		case ctx.Err() != nil || err == nil && !report.Busy:
			return purged
		case err != nil:
			r.Errorf("%s: %v", who, err)
			return purged
		}
		<-again.C
	}
}

// perform enqueues, leases and settles one message, and says how long the lease took.
func (r *rig) perform(c *outbox.Consumer) time.Duration {
	r.Helper()
	effect := outbox.Effect{Consumer: c.Name(), Target: c.Target(), Kind: "charge", Key: rand.Text()}
	err := pgxdb.InTx(r.Context(), r.pool, r.box, func(tx *pgxdb.BoxTx) error {
		_, err := r.box.Enqueue(r.Context(), tx, effect)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	began := time.Now()
	messages, err := r.box.Lease(r.Context(), c, outbox.LeaseRequest{Kinds: []string{"charge"}, Limit: 1, For: time.Minute})
	took := time.Since(began)
	if err != nil || len(messages) != 1 {
		r.Fatal(len(messages), err)
	}
	if _, err := r.box.Settle(r.Context(), c, outbox.Scope{}, messages[0], outbox.Delivered()); err != nil {
		r.Fatal(err)
	}
	return took
}

func p95(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)*95/100]
}
