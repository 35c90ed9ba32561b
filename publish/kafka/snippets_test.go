package kafkapub_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/outboxtest"
	"github.com/fencepost-go/fencepost/publish/kafka"
	"github.com/fencepost-go/fencepost/sender"
)

// publishOrders stands in docs/publishers.md too.

func publishOrders(ctx context.Context, box *outbox.Box, brokers ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	publisher, err := kafkapub.New(client, kafkapub.Config{})
	if err != nil {
		return err
	}
	orders, err := box.Consumer("shop", "orders", outbox.Policy{})
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
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	ctx, cancel := context.WithCancel(t.Context())
	box := outboxtest.New(t, outbox.Config{Observer: &outbox.Observer{
		HandlerDone: func(context.Context, outbox.Message, outbox.Outcome, time.Duration) { cancel() },
	}})
	outboxtest.Enqueue(t, box, outbox.Effect{Consumer: "shop", Target: "orders", Kind: "order.paid", Key: "17", Payload: []byte("17")})
	if err := publishOrders(ctx, box, c.ListenAddrs()...); err != nil {
		t.Fatal(err)
	}
	if all := stored(t, c, "orders"); len(all) != 1 || string(all[0].Value) != "17" {
		t.Errorf("stored %+v", all)
	}
}
