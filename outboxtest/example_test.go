package outboxtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/outboxtest"
	"github.com/fencepost-go/fencepost/sender"
)

// A test of a producer: the order and its charge stand in one transaction, which the test rolls back.
func ExampleRequireEnqueued() {
	var (
		conn       *pgx.Conn   // of the test's database
		box        *outbox.Box // over it
		placeOrder func(ctx context.Context, tx pgx.Tx, order string) error
	)
	_ = func(t *testing.T) {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.WithoutCancel(t.Context()))
		if err := placeOrder(t.Context(), tx, "17"); err != nil {
			t.Fatal(err)
		}
		outboxtest.RequireEnqueued(t, box, pgxdb.Tx(tx), outbox.Effect{
			Consumer: "shop", Target: "bank", Kind: "charge", Key: "charge/17", Payload: []byte("17"),
		})
	}
}

// A test of a handler: a second delivery is harmless.
func ExampleRedeliver() {
	_ = func(t *testing.T) {
		charged := map[string]int{} // a bank that knows idempotency keys
		charge := sender.Handler{Do: func(_ context.Context, m outbox.Message) error {
			charged[m.Key] = 100
			return nil
		}}
		outboxtest.Redeliver(t, charge, outbox.Message{Kind: "charge", Key: "charge/17"})
		if len(charged) != 1 {
			t.Errorf("charged %v", charged)
		}
	}
}

// A test without a database: an effect goes in, and a sender performs it.
func ExampleNew() {
	_ = func(t *testing.T) {
		box := outboxtest.New(t, outbox.Config{})
		outboxtest.Enqueue(t, box, outbox.Effect{Consumer: "shop", Target: "bank", Kind: "charge", Key: "charge/17"})
		shop, err := box.Consumer("shop", "bank", outbox.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := sender.New(box, shop, sender.Config{Handlers: sender.Handlers{
			"charge": {Do: func(context.Context, outbox.Message) error { return nil }},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if counts, err := s.RunOnce(t.Context()); err != nil || counts.Delivered != 1 {
			t.Errorf("%+v, %v", counts, err)
		}
	}
}
