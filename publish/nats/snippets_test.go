package natspub_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/outboxtest"
	"github.com/fencepost-go/fencepost/publish/nats"
	"github.com/fencepost-go/fencepost/sender"
)

// publishOrders stands in docs/publishers.md too.

func publishOrders(ctx context.Context, box *outbox.Box, url string) error {
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "ORDERS", Subjects: []string{"orders.>"}, Duplicates: time.Hour,
	}); err != nil {
		return err
	}
	publisher, err := natspub.New(js, natspub.Config{})
	if err != nil {
		return err
	}
	orders, err := box.Consumer("shop", "orders.paid", outbox.Policy{})
	if err != nil {
		return err
	}
	s, err := sender.New(box, orders, sender.Config{Handlers: sender.Handlers{"order.paid": publisher.Handler()}})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func TestSnippetWorks(t *testing.T) {
	t.Parallel()
	s := start(t, options(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	box := outboxtest.New(t, outbox.Config{Observer: &outbox.Observer{
		HandlerDone: func(context.Context, outbox.Message, outbox.Outcome, time.Duration) { cancel() },
	}})
	outboxtest.Enqueue(t, box, outbox.Effect{Consumer: "shop", Target: "orders.paid", Kind: "order.paid", Key: "17", Payload: []byte("17")})
	if err := publishOrders(ctx, box, s.ClientURL()); err != nil {
		t.Fatal(err)
	}
	orders, err := connect(t, s).Stream(t.Context(), "ORDERS")
	if err != nil {
		t.Fatal(err)
	}
	if all := stored(t, orders); len(all) != 1 || string(all[0].Data) != "17" {
		t.Errorf("stored %+v", all)
	}
}
