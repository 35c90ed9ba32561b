package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A handler of a sender claims the message's key before an effect that cannot tell a duplicate itself, here a printer. The message is delivered at least once;
// the label is printed once, unless a process dies between printing and completing.
func Example() {
	ctx := context.Background()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{}) // a program uses pgxdb.New or sqldb.New
	if err != nil {
		log.Fatal(err)
	}
	l, err := ledger.New(box, ledger.Config{})
	if err != nil {
		log.Fatal(err)
	}

	printLabel := func(ctx context.Context, m outbox.Message) error {
		request := ledger.Request{Tenant: m.Tenant, Scope: "labels", Key: m.Key, Digest: ledger.DigestOf(m.Payload)}
		var claimed ledger.Result
		err := l.InTx(ctx, func(tx db.Tx) (err error) {
			claimed, err = l.Take(ctx, tx, request)
			return err
		})
		switch {
		case errors.Is(err, ledger.ErrConflict):
			return outbox.Permanent(err)
		case err != nil:
			return err // no permission to print
		case claimed.Status == ledger.Duplicate:
			return nil
		case claimed.Status == ledger.InProgress:
			return errors.New("another has the claim") // and the message is tried again later
		}
		fmt.Printf("printing %s\n", m.Payload)
		return l.InTx(ctx, func(tx db.Tx) error { return l.Complete(ctx, tx, claimed.Claim, nil) })
	}

	warehouse, err := box.Consumer("warehouse", "printer", outbox.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := sender.New(box, warehouse, sender.Config{Handlers: sender.Handlers{"label": {Do: printLabel}}})
	if err != nil {
		log.Fatal(err)
	}
	err = l.InTx(ctx, func(tx db.Tx) error {
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "warehouse", Target: "printer", Kind: "label", Key: "order/17", Payload: []byte("label of order 17")})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.RunOnce(ctx); err != nil {
		log.Fatal(err)
	}
	standing, err := l.Find(ctx, "", "labels", "order/17")
	fmt.Println(standing.State, standing.Epoch, err)
	// Output:
	// printing label of order 17
	// completed 1 <nil>
}

// Where all of the work is in one database, the claim and the work are one transaction, and the work is done exactly once.
func ExampleLedger_Claim() {
	importInvoice := func(ctx context.Context, l *ledger.Ledger, tx db.Tx, number string, file []byte, store func(db.Tx) error) error {
		claimed, err := l.Claim(ctx, tx, ledger.Request{Scope: "invoices", Key: number, Digest: ledger.DigestOf(file)})
		if err != nil || claimed.Status != ledger.Claimed {
			return err // it is there already, or the number is taken by another invoice: ErrConflict
		}
		if err := store(tx); err != nil {
			return err // the caller rolls back, and the number is free
		}
		return l.Complete(ctx, tx, claimed.Claim, nil)
	}
	_ = importInvoice
}
