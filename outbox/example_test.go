package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// An order and the charge it causes are committed together, or neither is.
func ExampleBox_Enqueue() {
	placeOrder := func(ctx context.Context, pool *pgxpool.Pool, box *outbox.Box, order string) error {
		return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", order); err != nil {
				return err
			}
			_, err := box.Enqueue(ctx, tx, outbox.Effect{
				Consumer: "wallets", Target: "ledger", Kind: "charge",
				Key:     "charge/" + order,
				Payload: []byte(`{"order":"` + order + `"}`),
			})
			return err
		})
	}
	_ = placeOrder
}

// A program may run its own loop instead of package sender's.
func Example() {
	ctx := context.Background()
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New or sqldb.New
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	wallets, err := box.Consumer("wallets", "ledger", outbox.Policy{Jitter: outbox.NoJitter})
	if err != nil {
		log.Fatal(err)
	}
	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error {
		_, err := box.EnqueueMany(ctx, tx, []outbox.Effect{
			{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "charge/1"},
			{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "charge/2"},
			{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "charge/3"},
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	charge := func(m outbox.Message) error {
		switch m.Key {
		case "charge/1":
			return nil
		case "charge/2":
			return errors.New("ledger answered 503")
		default:
			return outbox.Permanent(errors.New("account is closed"))
		}
	}
	messages, err := box.Lease(ctx, wallets, outbox.LeaseRequest{Kinds: []string{"charge"}, Limit: 10, For: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		result, err := box.Settle(ctx, wallets, outbox.Scope{}, m, outbox.OutcomeOf(charge(m)))
		if err != nil {
			log.Fatal(err) // an unknown settlement is no permission to perform the message again
		}
		fmt.Println(m.Key, result.Status, result.Delay)
	}
	// Output:
	// charge/1 acknowledged 0s
	// charge/2 retry_scheduled 30s
	// charge/3 dead_lettered 0s
}
