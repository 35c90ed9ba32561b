package fencepost_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// chargeOf derives the charge of an order.
func chargeOf(e events.Event) ([]outbox.Effect, error) {
	return []outbox.Effect{{Kind: "charge", Payload: e.Payload}}, nil
}

func openLog(box *outbox.Box) (*events.Log, error) {
	return events.New(box, events.Config{Subscriptions: []events.Subscription{
		{Name: "charges", Consumer: "shop", Target: "bank", Types: []string{"order.placed"}, Derive: chargeOf},
		events.ToBus("books"),
	}})
}

func recordOrder(ctx context.Context, pool *pgxpool.Pool, box *outbox.Box, log *events.Log, o Order) error {
	return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id, cents) VALUES ($1, $2)", o.ID, o.Cents); err != nil {
			return err
		}
		_, err := log.Append(ctx, tx, events.Event{Stream: o.ID, Type: "order.placed", Payload: []byte(o.ID)})
		return err
	})
}

func keepBooks(ctx context.Context, log *events.Log) error {
	bus, err := events.NewBus(log, "books", events.BusConfig{Slots: 2})
	if err != nil {
		return err
	}
	err = bus.Subscribe("turnover", pgxdb.EventHandler(func(ctx context.Context, tx pgx.Tx, e events.Event) error {
		_, err := tx.Exec(ctx, "UPDATE books SET orders = orders + 1")
		return err
	}), "order.placed")
	if err != nil {
		return err
	}
	return bus.Run(ctx)
}

func indexOrders(ctx context.Context, pool *pgxpool.Pool, box *outbox.Box, log *events.Log, index func(tx pgx.Tx, e events.Event) error) error {
	from, err := log.Reader(ctx, "search-index")
	if err != nil {
		return err
	}
	page, err := log.Read(ctx, from, 500, events.Filter{})
	if err != nil {
		return err
	}
	return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error {
		for _, e := range page.Events {
			if err := index(tx, e); err != nil {
				return err
			}
		}
		return log.SaveReader(ctx, tx, "search-index", from, page.Next)
	})
}
