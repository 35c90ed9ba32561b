package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/db"
)

// The workload of floor.sql.
const (
	consumer     = floor.Consumer
	target       = floor.Target
	kind         = floor.Kind
	payloadSize  = 200
	maxAge       = floor.MaxAge
	leaseFor     = floor.Lease
	longestLease = int64(db.LongestLease / time.Microsecond)

	batch = 500
)

// A contender does the work, on one session.
type contender interface {
	// enqueue stores total messages, size to a transaction of one statement.
	enqueue(ctx context.Context, total, size int) error
	// drain leases and settles in batches until nothing is due. It goes on where the last lease ended, as a sender does.
	drain(ctx context.Context, size int) (drained int, err error)
}

// inServer is the floor.
type inServer struct{}

func (inServer) enqueue(ctx context.Context, total, size int) error {
	return floor.Enqueue(ctx, server, total, size)
}

func (inServer) drain(ctx context.Context, size int) (drained int, err error) {
	return floor.Drain(ctx, server, size)
}

// One message to a transaction: what a producer pays for an effect beside its own work.
func BenchmarkEnqueueOne(b *testing.B) {
	compare(b, 4_000, func(b *testing.B, c contender, messages int) time.Duration {
		empty(b)
		return timed(b, func() error { return c.enqueue(b.Context(), messages, 1) })
	})
}

func BenchmarkEnqueueMany(b *testing.B) {
	compare(b, 20_000, func(b *testing.B, c contender, messages int) time.Duration {
		empty(b)
		return timed(b, func() error { return c.enqueue(b.Context(), messages, batch) })
	})
}

func BenchmarkLeaseSettle(b *testing.B) {
	compare(b, 20_000, func(b *testing.B, c contender, messages int) time.Duration {
		empty(b)
		if err := floor.Enqueue(b.Context(), server, messages, batch); err != nil {
			b.Fatal(err)
		}
		return timed(b, func() error {
			drained, err := c.drain(b.Context(), batch)
			if err == nil && drained != messages {
				b.Errorf("drained %d of %d messages", drained, messages)
			}
			return err
		})
	})
}

// rounds is how often driver and floor take turns: a machine is never quiet, so pairs are compared and medians count.
const rounds = 5

// compare gives the same run to each driver and to the floor, by turns, and reports the medians of the driver's rate, of the floor's, and of
// the share that the driver reached of the floor right beside it.
func compare(b *testing.B, messages int, run func(b *testing.B, c contender, messages int) time.Duration) {
	for _, driver := range []struct {
		name string
		open func(*testing.B) client
	}{{"pgx", openPgx}, {"pq", openPq}} {
		b.Run(driver.name, func(b *testing.B) {
			client := driver.open(b)
			// The first runs pay for the plans.
			run(b, inServer{}, messages)
			run(b, client, messages)
			var rates, floors, shares []float64
			for b.Loop() {
				for range rounds {
					lowest := run(b, inServer{}, messages)
					taken := run(b, client, messages)
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

// empty leaves no row of an earlier run, no dead entry and no bloat.
func empty(b *testing.B) {
	b.Helper()
	if _, err := server.ExecContext(b.Context(), "TRUNCATE outbox.message, outbox.queue, outbox.order_lease, outbox.settlement, outbox.event"); err != nil {
		b.Fatal(err)
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
