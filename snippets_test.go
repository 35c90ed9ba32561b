package fencepost_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// What stands below is in README.md too, word for word: TestSnippets compares them.

type Order struct {
	ID    string
	Cents int
}

func openBox(pool *pgxpool.Pool) (*outbox.Box, error) {
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		return nil, err
	}
	return outbox.New(store, outbox.Config{})
}

func placeOrder(ctx context.Context, pool *pgxpool.Pool, box *outbox.Box, o Order) error {
	return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id, cents) VALUES ($1, $2)", o.ID, o.Cents); err != nil {
			return err
		}
		_, err := box.Enqueue(ctx, tx, outbox.Effect{
			Consumer: "shop", Target: "bank", Kind: "charge",
			Key:     "charge/" + o.ID,
			Payload: []byte(o.ID),
		})
		return err
	})
}

func sendCharges(ctx context.Context, box *outbox.Box, charge func(ctx context.Context, key, order string) error) error {
	shop, err := box.Consumer("shop", "bank", outbox.Policy{MaxAttempts: 10})
	if err != nil {
		return err
	}
	s, err := sender.New(box, shop, sender.Config{Handlers: sender.Handlers{
		"charge": {Do: func(ctx context.Context, m outbox.Message) error {
			return charge(ctx, m.Key, string(m.Payload)) // the key makes a second call harmless at the bank
		}},
	}})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func keepHouse(ctx context.Context, box *outbox.Box) error {
	j, err := janitor.New(box, janitor.Config{Delivered: 14 * 24 * time.Hour})
	if err != nil {
		return err
	}
	return j.Run(ctx)
}
