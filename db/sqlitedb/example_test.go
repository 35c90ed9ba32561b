package sqlitedb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
	"github.com/fencepost-go/fencepost/sender"
)

func Example() {
	if err := takeOrder(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func takeOrder(ctx context.Context) error {
	store, err := sqlitedb.Open("shop.db", sqlitedb.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := schema.Up(ctx, store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		return err
	}
	if _, err := store.DB().ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, cents INTEGER)"); err != nil {
		return err
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		return err
	}

	// The order and its charge are committed together, or neither is.
	err = sqlitedb.InTx(ctx, store, box, func(tx *sqlitedb.BoxTx) error {
		order, err := tx.ExecContext(ctx, "INSERT INTO orders (cents) VALUES (?)", 4200)
		if err != nil {
			return err
		}
		id, err := order.LastInsertId()
		if err != nil {
			return err
		}
		_, err = box.Enqueue(ctx, tx, outbox.Effect{Consumer: "shop", Target: "bank", Kind: "charge", Key: fmt.Sprintf("charge/%d", id)})
		return err
	})
	if err != nil {
		return err
	}

	bank, err := box.Consumer("shop", "bank", outbox.Policy{MaxAttempts: 10})
	if err != nil {
		return err
	}
	s, err := sender.New(box, bank, sender.Config{Handlers: sender.Handlers{
		"charge": {Do: func(_ context.Context, m outbox.Message) error {
			fmt.Println("charged", m.Key) // with the key, which makes a second call harmless at the bank
			return nil
		}},
	}})
	if err != nil {
		return err
	}
	_, err = s.RunOnce(ctx) // a service calls Run, which goes on until ctx ends
	return err
}
