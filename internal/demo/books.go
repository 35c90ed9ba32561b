package demo

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	busName     = "books"
	orderPlaced = "order.placed"
)

// newLog is the shop's log: what an order causes is derived from the fact that it was placed.
func newLog(box *outbox.Box) (*events.Log, error) {
	return events.New(box, events.Config{Subscriptions: []events.Subscription{
		{Name: "orders", Consumer: consumer, Target: target, Types: []string{orderPlaced}, Derive: effectsOf},
		events.ToBus(busName),
	}})
}

func effectsOf(e events.Event) ([]outbox.Effect, error) {
	var o order
	if err := json.Unmarshal(e.Payload, &o); err != nil {
		return nil, err
	}
	return o.effects()
}

// Books keep the turnover of each customer: a handler of a bus, each order counted in the transaction that remembers that it was. Beside it
// another handler fails now and then, so that events come again.
type books struct {
	bus   *events.Bus
	ended sync.WaitGroup
	err   error
}

var errBusy = errors.New("the statistics office is closed")

func openBooks(ctx context.Context, on connection, log *events.Log) (*books, error) {
	const tables = `CREATE TABLE shop_turnover (customer text PRIMARY KEY, orders bigint NOT NULL, cents bigint NOT NULL)`
	if err := on.execute(ctx, tables); err != nil {
		return nil, err
	}
	bus, err := events.NewBus(log, busName, events.BusConfig{Slots: 2, InitialDelay: 200 * time.Millisecond, Poll: 100 * time.Millisecond, Name: "books"})
	if err != nil {
		return nil, err
	}
	b := &books{bus: bus}
	failed := map[string]bool{}
	var mu sync.Mutex
	return b, errors.Join(
		bus.Subscribe("turnover", on.handler(func(ctx context.Context, tx transaction, e events.Event) error {
			var o order
			if err := json.Unmarshal(e.Payload, &o); err != nil {
				return events.Reject(err.Error())
			}
			const count = `INSERT INTO shop_turnover (customer, orders, cents) VALUES ($1, 1, $2)
				ON CONFLICT (customer) DO UPDATE SET orders = shop_turnover.orders + 1, cents = shop_turnover.cents + excluded.cents`
			return tx.execute(ctx, count, o.Customer, o.Cents)
		}), orderPlaced),
		bus.SubscribeBeside("statistics", func(_ context.Context, e events.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if e.Position%20 == 0 && !failed[e.ID] {
				failed[e.ID] = true
				return errBusy
			}
			return nil
		}),
	)
}

// run keeps the books until ctx ends; wait returns after that.
func (b *books) run(ctx context.Context) { b.ended.Go(func() { b.err = b.bus.Run(ctx) }) }

func (b *books) wait() error {
	b.ended.Wait()
	return b.err
}

// readStream counts how often each order is in the stream of events. Where others use the server too, their transactions may hold the stream back for
// a while.
func (s *story) readStream(ctx context.Context, orders int) (map[int]int, error) {
	seen := map[int]int{}
	var after events.Cursor
	for since := time.Now(); ; {
		page, err := s.log.Read(ctx, after, 500, events.Filter{Types: []string{orderPlaced}})
		if err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			var o order
			if err := json.Unmarshal(e.Payload, &o); err != nil {
				return nil, err
			}
			seen[o.ID]++
		}
		if page.Next == after && (len(seen) >= orders || time.Since(since) > patience) {
			return seen, nil
		}
		if page.Next == after {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
		after = page.Next
	}
}
