package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
	"github.com/fencepost-go/fencepost/webhook"
)

// A customer gets a webhook for each invoice that is paid.
func ExamplePoster() {
	ctx := context.Background()
	secret := webhook.NewSecret() // kept beside the customer's URL, and told the customer once
	customer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, err := webhook.Verify(r.Header, body, []webhook.Secret{secret}, 0)
		fmt.Printf("%s, verified: %t\n", body, err == nil)
	}))
	defer customer.Close()

	endpointOf := func(_ context.Context, m outbox.Message) (webhook.Endpoint, error) {
		return webhook.Endpoint{URL: customer.URL + "/" + m.Target, Secrets: []webhook.Secret{secret}}, nil // a program looks it up
	}
	poster, err := webhook.NewPoster(endpointOf, webhook.PosterConfig{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // this customer's server alone is on this host
	})
	if err != nil {
		log.Fatal(err)
	}
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New or sqldb.New
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error {
		_, err := box.Enqueue(ctx, tx, outbox.Effect{
			Consumer: "customers", Target: "acme", Kind: "invoice.paid", Key: "invoice/17", Payload: []byte(`{"type": "invoice.paid", "data": {"id": 17}}`),
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	customers, err := box.Consumer("customers", "acme", outbox.Policy{MaxAttempts: 20, MaxSnooze: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	s, err := sender.New(box, customers, sender.Config{Handlers: sender.Handlers{"invoice.paid": {Do: poster.Do}}})
	if err != nil {
		log.Fatal(err)
	}
	counts, err := s.RunOnce(ctx)
	fmt.Println("delivered:", counts.Delivered, err)
	// Output:
	// {"type": "invoice.paid", "data": {"id": 17}}, verified: true
	// delivered: 1 <nil>
}

// The bank's webhooks become effects, each once.
func ExampleReceiver() {
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{}) // a program uses pgxdb.New or sqldb.New
	if err != nil {
		log.Fatal(err)
	}
	l, err := ledger.New(box, ledger.Config{})
	if err != nil {
		log.Fatal(err)
	}
	private, public := webhook.NewKeyPair() // a program gets the public key from the bank, and reads it with ParseSecret
	bank, err := webhook.From(webhook.Origin{Source: "bank", Secrets: []webhook.Secret{public}})
	if err != nil {
		log.Fatal(err)
	}
	record := func(ctx context.Context, tx db.Tx, d *webhook.Delivery) error {
		receipt, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "shop", Target: "books", Kind: "payment", Key: d.ID, Payload: d.Body})
		if err == nil {
			fmt.Println("recording", d.ID)
			d.OnCommit(receipt.Committed)
		}
		return err
	}
	receiver, err := webhook.NewReceiver(l, bank, record, webhook.ReceiverConfig{})
	if err != nil {
		log.Fatal(err)
	}

	for _, body := range []string{`{"cents": 100}`, `{"cents": 100}`, `{"cents": 999}`} {
		r := httptest.NewRequest(http.MethodPost, "/hooks/bank", strings.NewReader(body))
		r.Header, err = webhook.Sign("msg_1", time.Now(), []byte(body), private)
		if err != nil {
			log.Fatal(err)
		}
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, r)
		fmt.Println(w.Code, "replayed:", w.Header().Get(webhook.Replayed) == "true")
	}
	// Output:
	// recording msg_1
	// 204 replayed: false
	// 204 replayed: true
	// 409 replayed: false
}
