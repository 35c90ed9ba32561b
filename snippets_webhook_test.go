package fencepost_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
	"github.com/fencepost-go/fencepost/webhook"
)

func disable(context.Context, outbox.Message, webhook.Endpoint) error { return nil }

func appendPayment(ctx context.Context, tx db.Tx, log *events.Log, d *webhook.Delivery) error {
	_, err := log.Append(ctx, tx, events.Event{Stream: d.Source, Type: "payment.received", Payload: d.Body})
	return err
}

func sendWebhooks(ctx context.Context, box *outbox.Box, endpointOf webhook.EndpointFunc) error {
	poster, err := webhook.NewPoster(endpointOf, webhook.PosterConfig{Gone: disable})
	if err != nil {
		return err
	}
	defer poster.CloseIdleConnections()
	customers, err := box.Consumer("shop", "customers", outbox.Policy{MaxAttempts: 20, MaxDelay: 6 * time.Hour, MaxAge: 72 * time.Hour, MaxSnooze: time.Hour})
	if err != nil {
		return err
	}
	s, err := sender.New(box, customers, sender.Config{
		Scope: outbox.AllTenants, Handlers: sender.Handlers{"invoice.paid": {Do: poster.Do}},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func receiveWebhooks(l *ledger.Ledger, events *events.Log, bank webhook.Secret) (http.Handler, error) {
	from, err := webhook.From(webhook.Origin{Source: "bank", Secrets: []webhook.Secret{bank}})
	if err != nil {
		return nil, err
	}
	return webhook.NewReceiver(l, from, func(ctx context.Context, tx db.Tx, d *webhook.Delivery) error {
		return appendPayment(ctx, tx, events, d)
	}, webhook.ReceiverConfig{})
}

func TestWebhookSnippetsWork(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(box, ledger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := openLog(box)
	if err != nil {
		t.Fatal(err)
	}
	secret := webhook.NewSecret()
	receiver, err := receiveWebhooks(l, log, secret)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/hooks/bank", strings.NewReader("{}"))
	if r.Header, err = webhook.Sign("msg_1", time.Now(), []byte("{}"), secret); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if receiver.ServeHTTP(w, r); w.Code != http.StatusNoContent {
		t.Errorf("%d: %s", w.Code, w.Body)
	}

	err = memdb.InTx(t.Context(), store, box, func(tx *memdb.Tx) error {
		_, err := box.Enqueue(t.Context(), tx, outbox.Effect{Tenant: "acme", Consumer: "shop", Target: "customers", Kind: "invoice.paid", Key: "invoice/17"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err = sendWebhooks(ctx, box, func(context.Context, outbox.Message) (webhook.Endpoint, error) {
		asked++
		cancel()
		return webhook.Endpoint{URL: "http://127.0.0.1", Secrets: []webhook.Secret{secret}}, nil
	})
	page, listed := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{State: outbox.StateDead, Limit: 10})
	if err != nil || listed != nil || asked != 1 || len(page.Messages) != 1 || !strings.Contains(page.Messages[0].Reason, "127.0.0.1 is not public") {
		t.Errorf("asked %d times, %v, %v: %+v", asked, err, listed, page.Messages)
	}
}
