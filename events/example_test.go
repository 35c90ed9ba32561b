package events_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A fact, an effect that follows from it, and a handler that has it once. A service calls Run of the bus, which blocks, and has a sender for the
// effects.
func Example() {
	ctx := context.Background()
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New, sqldb.New or sqlitedb.Open
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := events.New(box, events.Config{Subscriptions: []events.Subscription{
		{
			Name: "charges", Consumer: "shop", Target: "bank", Types: []string{"order.placed"},
			Derive: func(e events.Event) ([]outbox.Effect, error) {
				return []outbox.Effect{{Kind: "charge", Payload: e.Payload}}, nil
			},
		},
		events.ToBus("books"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	bus, err := events.NewBus(orders, "books", events.BusConfig{})
	if err != nil {
		log.Fatal(err)
	}
	err = bus.Subscribe("turnover", func(_ context.Context, _ db.Tx, e events.Event) error { // with pgx: pgxdb.EventHandler(…)
		fmt.Printf("%s of %s: %s\n", e.Type, e.Stream, e.Payload)
		return nil
	}, "order.placed")
	if err != nil {
		log.Fatal(err)
	}

	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error {
		receipts, err := orders.Append(ctx, tx, events.Event{ID: "e-1", Stream: "order-7", Type: "order.placed", Payload: []byte("700")})
		if err == nil {
			fmt.Println(receipts[0].Status, "with", len(receipts[0].Effects), "effects")
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := bus.Sender().RunOnce(ctx); err != nil {
		log.Fatal(err)
	}
	page, err := orders.Read(ctx, events.Cursor{}, 100, events.Filter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Events {
		fmt.Println(e.Position, e.ID)
	}
	// Output:
	// recorded with 2 effects
	// order.placed of order-7: 700
	// 1 e-1
}
