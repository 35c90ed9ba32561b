package pgxdb_test

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// An effect is recorded in the caller's transaction, which the caller commits. InTx does both.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store, err := pgxdb.New(pool, pgxdb.Config{Listen: pool.Config().ConnConfig})
	if err != nil {
		log.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	tx, err := pool.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback(ctx) // does nothing after the commit
	receipt, err := box.Enqueue(ctx, pgxdb.Tx(tx), outbox.Effect{Consumer: "shop", Target: "bank", Kind: "charge", Key: "charge/17"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	receipt.Committed() // wakes senders; without it they find the message at their next poll
}
