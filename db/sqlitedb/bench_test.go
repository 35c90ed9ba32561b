package sqlitedb

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
	"github.com/fencepost-go/fencepost/schema"
)

// The workload is that of the folder bench: one lane of messages that are due at once, each of 200 bytes.
const (
	benchBatch = 500
	benchAge   = int64(24 * time.Hour / time.Microsecond)
	benchLease = int64(30 * time.Second / time.Microsecond)
	longest    = int64(db.LongestLease / time.Microsecond)
)

// A contender does the work on a file.
type contender interface {
	// enqueue stores total messages, size to a transaction.
	enqueue(ctx context.Context, total, size int) error
	// drain leases and settles in batches until nothing is due. It goes on where the last lease ended, as a sender does.
	drain(ctx context.Context, size int) (drained int, err error)
}

// One message to a transaction: what a producer pays for an effect beside its own work.
func BenchmarkEnqueueOne(b *testing.B) {
	compare(b, 4_000, func(b *testing.B, c contender, messages int) time.Duration {
		return timed(b, func() error { return c.enqueue(b.Context(), messages, 1) })
	})
}

func BenchmarkEnqueueMany(b *testing.B) {
	compare(b, 20_000, func(b *testing.B, c contender, messages int) time.Duration {
		return timed(b, func() error { return c.enqueue(b.Context(), messages, benchBatch) })
	})
}

func BenchmarkLeaseSettle(b *testing.B) {
	compare(b, 20_000, func(b *testing.B, c contender, messages int) time.Duration {
		if err := c.enqueue(b.Context(), messages, benchBatch); err != nil {
			b.Fatal(err)
		}
		return timed(b, func() error {
			drained, err := c.drain(b.Context(), benchBatch)
			if err == nil && drained != messages {
				b.Errorf("drained %d of %d messages", drained, messages)
			}
			return err
		})
	})
}

// compare gives the same run to the store and to the floor by turns, each on a file of its own, and reports the medians of the store's rate, of
// the floor's, and of the share that the store reached of the floor right beside it.
func compare(b *testing.B, messages int, run func(*testing.B, contender, int) time.Duration) {
	for _, c := range []struct {
		name        string
		synchronous Synchronous
	}{{"normal", Normal}, {"full", Full}} {
		b.Run(c.name, func(b *testing.B) {
			var rates, floors, shares []float64
			for b.Loop() {
				for range 5 {
					lowest := run(b, openFloor(b, c.synchronous), messages)
					taken := run(b, openClient(b, c.synchronous), messages)
					rates = append(rates, float64(messages)/taken.Seconds())
					floors = append(floors, float64(messages)/lowest.Seconds())
					shares = append(shares, lowest.Seconds()/taken.Seconds())
				}
			}
			b.ReportMetric(median(rates), "msgs/s")
			b.ReportMetric(median(floors), "floor_msgs/s")
			b.ReportMetric(median(shares), "of_floor")
			b.ReportMetric(0, "ns/op") // hides it: an operation is all rounds with what prepares them
		})
	}
}

func timed(b *testing.B, work func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := work(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func openFresh(b *testing.B, synchronous Synchronous) *Store {
	b.Helper()
	store, err := Open(filepath.Join(b.TempDir(), "bench.db"), Config{Synchronous: synchronous})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	if err := schema.Up(b.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		b.Fatal(err)
	}
	return store
}

// client is the store as a service uses it.
type client struct{ *Store }

func openClient(b *testing.B, synchronous Synchronous) client {
	return client{openFresh(b, synchronous)}
}

func (c client) enqueue(ctx context.Context, total, size int) error {
	params := db.EnqueueParams{
		Tenants: make([]string, size), Consumers: slices.Repeat([]string{"c"}, size), Targets: slices.Repeat([]string{"t"}, size),
		Kinds: slices.Repeat([]string{"k"}, size), Keys: make([]string, size), OrderKeys: make([]string, size), Priorities: make([]int16, size),
		Digests: slices.Repeat([][]byte{benchDigest}, size), Metadatas: make([]string, size), Payloads: slices.Repeat([][]byte{benchPayload}, size),
		SourcePositions: make([]int64, size), SourceEventIds: make([]string, size), MaxAges: slices.Repeat([]int64{benchAge}, size),
		DueAts: slices.Repeat([]time.Time{db.Never}, size), Delays: make([]int64, size),
	}
	for start := 0; start < total; start += size {
		for i := range params.Keys {
			params.Keys[i] = benchKey(start + i)
		}
		err := InTx(ctx, c.Store, nil, func(tx *BoxTx) error {
			_, err := c.Enqueue(ctx, tx, params)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c client) drain(ctx context.Context, size int) (drained int, err error) {
	lease := db.LeaseDueParams{
		Kinds: []string{"k"}, Tenants: []string{""}, Priorities: []int16{0}, AfterDues: []time.Time{db.Never}, AfterIds: []int64{0},
		AttemptLimits: []int32{12}, MaxAges: []int64{benchAge}, AllTenants: true, Consumer: "c", Target: "t", Lease: benchLease,
		LongestLease: longest, Examine: int32(10 * size), Quota: int32(size), MaxRows: int32(size), Token: make([]byte, 16), Worker: 1,
	}
	for {
		rand.Read(lease.Token)
		rows, err := c.LeaseDue(ctx, lease)
		if err != nil || len(rows) == 1 {
			return drained, err
		}
		settle := db.SettleDeliveredParams{Consumer: "c", Target: "t", AllTenants: true}
		for _, row := range rows[:len(rows)-1] {
			settle.Ids, settle.Tokens, settle.Results = append(settle.Ids, row.ID), append(settle.Tokens, lease.Token...), append(settle.Results, "")
			lease.AfterDues[0], lease.AfterIds[0] = row.DueAt, row.ID
		}
		settled, err := c.SettleDelivered(ctx, settle)
		if err != nil {
			return drained, err
		}
		drained += len(settled)
	}
}

var (
	benchDigest  = bytes.Repeat([]byte{0xd1}, 32)
	benchPayload = bytes.Repeat([]byte{0xa7}, 200)
)

func benchKey(n int) string { return fmt.Sprintf("order-%010d", n) }

// floor runs the very statements of queries/sqlite in a loop on one connection, prepared once, in the same transactions; it maps no rows and checks
// nothing.
type floor struct {
	conn *sql.Conn
	q    *gen.Queries
}

// A lasting connection is one that keeps what is prepared on it, as if it were one long transaction.
type lasting struct{ *sql.Conn }

func (lasting) StmtContext(_ context.Context, known *sql.Stmt) *sql.Stmt { return known }

func openFloor(b *testing.B, synchronous Synchronous) floor {
	conn, err := openFresh(b, synchronous).DB().Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return floor{conn, new(statements).in(lasting{conn})}
}

// in runs the statements in a transaction, with the clock read as the store reads it.
func (f floor) in(ctx context.Context, statements func(now int64) error) error {
	if _, err := f.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	now, err := f.q.ReadClock(ctx)
	if err := errors.Join(err, statements(now)); err != nil {
		return err
	}
	_, err = f.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (f floor) enqueue(ctx context.Context, total, size int) error {
	message := gen.EnqueueMessageParams{Consumer: "c", Target: "t", Kind: "k", Digest: benchDigest, Payload: benchPayload, MaxAge: benchAge}
	due := gen.EnqueueDueParams{Consumer: "c", Target: "t", Kind: "k"}
	for start := 0; start < total; start += size {
		err := f.in(ctx, func(now int64) error {
			message.CreatedAt, due.DueAt, due.ExpiresAt = now, now, now+benchAge
			for i := range size {
				message.Key = benchKey(start + i)
				ids, err := f.q.EnqueueMessage(ctx, message)
				if err != nil {
					return err
				}
				due.MessageID = ids[0]
				if err := f.q.EnqueueDue(ctx, due); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f floor) drain(ctx context.Context, size int) (drained int, err error) {
	pick := gen.LeaseDuePickParams{Consumer: "c", Target: "t", Kind: "k", AttemptLimit: 12, MaxAge: benchAge, Quota: int64(size), Examine: int64(10 * size)}
	token, lanes := make([]byte, 16), `[{"kind":"k","tenant":""}]`
	for {
		rand.Read(token)
		var ids string
		var given []holding
		var verdicts []verdict
		err := f.in(ctx, func(now int64) error {
			pick.Now, pick.Latest = now, now+longest
			_, err := f.q.LeaseDueLanes(ctx, gen.LeaseDueLanesParams{Lanes: lanes, AllTenants: true, Scope: "[]", Consumer: "c", Target: "t"})
			if err != nil {
				return err
			}
			rows, err := f.q.LeaseDuePick(ctx, pick)
			if err != nil {
				return err
			}
			var picked []int64
			for i, row := range rows {
				picked = append(picked, row.MessageID)
				given = append(given, holding{row.MessageID, hexed(token), i})
				verdicts = append(verdicts, verdict{ID: row.MessageID})
				pick.AfterDue, pick.AfterID = row.DueAt, row.MessageID
			}
			ids = list(picked)
			if err := f.q.LeaseGrant(ctx, gen.LeaseGrantParams{Token: token, Worker: 1, Until: now + benchLease, Ids: ids}); err != nil {
				return err
			}
			_, err = f.q.LeaseRead(ctx, gen.LeaseReadParams{Ids: ids})
			return err
		})
		if err != nil || len(verdicts) == 0 {
			return drained, err
		}
		err = f.in(ctx, func(now int64) error {
			_, err := f.q.SettleFence(ctx, gen.SettleFenceParams{Given: list(given), Consumer: "c", Target: "t", AllTenants: true, Scope: "[]", Now: now})
			return errors.Join(err,
				f.q.SettleRecord(ctx, gen.SettleRecordParams{Outcome: "delivered", Given: list(verdicts), Now: now}),
				f.q.SettleDequeue(ctx, gen.SettleDequeueParams{Ids: ids}))
		})
		if err != nil {
			return drained, err
		}
		drained += len(verdicts)
	}
}
