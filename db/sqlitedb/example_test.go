package sqlitedb_test

import (
	"context"
	"log"

	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// An order and its charge are committed together, or neither is.
func ExampleInTx() {
	ctx := context.Background()
	store, err := sqlitedb.Open("shop.db", sqlitedb.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := schema.Up(ctx, store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		log.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	err = sqlitedb.InTx(ctx, store, box, func(tx *sqlitedb.BoxTx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", 17); err != nil {
			return err
		}
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "shop", Target: "bank", Kind: "charge", Key: "charge/17"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
