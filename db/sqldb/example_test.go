package sqldb_test

import (
	"context"
	"database/sql"
	"log"
	"os"

	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/outbox"
)

// An order and its charge are committed together, or neither is.
func ExampleInTx() {
	ctx := context.Background()
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqldb.New(db, sqldb.Config{ListenDSN: os.Getenv("DATABASE_URL")})
	if err != nil {
		log.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	err = sqldb.InTx(ctx, db, box, func(tx *sqldb.BoxTx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", 17); err != nil {
			return err
		}
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "shop", Target: "bank", Kind: "charge", Key: "charge/17"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
