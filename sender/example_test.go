package sender_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A service that produces and sends: what it commits starts at once, without being looked for.
func ExampleConfig_handOff() {
	ctx, stop := context.WithCancel(context.Background())
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New or sqldb.New
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	wallets, err := box.Consumer("wallets", "ledger", outbox.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := sender.New(box, wallets, sender.Config{HandOff: true, Handlers: sender.Handlers{
		"charge": {Do: func(_ context.Context, m outbox.Message) error {
			fmt.Println("performed", m.Key)
			stop()
			return nil
		}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error { // which says that it has committed
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "order-1"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stopped:", <-done)
	// Output:
	// performed order-1
	// stopped: <nil>
}

type push struct {
	Device string
	Text   string
}

// A sender with two kinds. A service calls Run, which blocks; RunOnce is for cron and tests.
func Example() {
	ctx := context.Background()
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New or sqldb.New
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error {
		_, err := box.EnqueueMany(ctx, tx, []outbox.Effect{
			{Consumer: "wallets", Target: "phones", Kind: "push", Key: "push/1", Payload: []byte(`{"Device": "d1", "Text": "paid"}`)},
			{Consumer: "wallets", Target: "phones", Kind: "charge", Key: "charge/1"},
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	wallets, err := box.Consumer("wallets", "phones", outbox.Policy{MaxAttempts: 5})
	if err != nil {
		log.Fatal(err)
	}
	s, err := sender.New(box, wallets, sender.Config{
		Slots: 1,
		Handlers: sender.Handlers{
			"push": {
				MaxAge: 5 * time.Minute,
				Do: sender.JSON(func(_ context.Context, m outbox.Message, p push) error {
					fmt.Println(m.Key, p.Device, p.Text)
					return nil
				}),
			},
			"charge": {
				Timeout:          10 * time.Second,
				UnknownOnTimeout: true, // the ledger may have charged
				Do:               func(context.Context, outbox.Message) error { return errors.New("ledger answered 503") },
				Reconcile:        func(context.Context, outbox.Message) (sender.Outcome, error) { return sender.Delivered, nil },
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	counts, err := s.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(counts.Delivered, "delivered,", counts.Retried, "to be tried again")
	// Output:
	// push/1 d1 paid
	// 1 delivered, 1 to be tried again
}
