package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// What an event costs beside the effects that two subscriptions derive from it: the same two effects in a transaction of their own, by turns with
// an event that derives them. pings is the round trip of the machine, for the difference to be told in.
func BenchmarkAppend(b *testing.B) {
	pool, err := pgxpool.New(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		b.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, payloadSize)
	effect := func(events.Event) ([]outbox.Effect, error) {
		return []outbox.Effect{{Kind: kind, Payload: payload}}, nil
	}
	log, err := events.New(box, events.Config{Subscriptions: []events.Subscription{
		{Name: "one", Consumer: consumer, Target: target, Derive: effect}, {Name: "two", Consumer: consumer, Target: target, Derive: effect},
	}})
	if err != nil {
		b.Fatal(err)
	}
	const rows = 1_000
	key := 0
	plain := func(tx pgx.Tx) error {
		key++
		effects := make([]outbox.Effect, 2)
		for i := range effects {
			effects[i] = outbox.Effect{Consumer: consumer, Target: target, Kind: kind, Key: fmt.Sprintf("%d-%d", key, i), Payload: payload}
		}
		_, err := box.EnqueueMany(b.Context(), pgxdb.Tx(tx), effects)
		return err
	}
	event := func(tx pgx.Tx) error {
		_, err := log.Append(b.Context(), pgxdb.Tx(tx), events.Event{Type: "order.placed", Payload: payload})
		return err
	}
	ping := func(tx pgx.Tx) error { _, err := tx.Exec(b.Context(), "SELECT 1"); return err }
	run := func(do func(pgx.Tx) error) time.Duration {
		empty(b)
		return timed(b, func() error {
			for range rows {
				if err := pgx.BeginFunc(context.Background(), pool, do); err != nil {
					return err
				}
			}
			return nil
		})
	}
	run(plain)
	run(event)
	var rates, shares, pings []float64
	for b.Loop() {
		for range rounds {
			without, with, trip := run(plain), run(event), run(ping)-run(func(pgx.Tx) error { return nil })
			rates = append(rates, rows/with.Seconds())
			shares = append(shares, without.Seconds()/with.Seconds())
			pings = append(pings, (with-without).Seconds()/trip.Seconds())
		}
	}
	b.ReportMetric(median(rates), "events/s")
	b.ReportMetric(median(shares), "of_plain")
	b.ReportMetric(median(pings), "pings_more")
	b.ReportMetric(0, "ns/op")
}
