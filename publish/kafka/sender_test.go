package kafkapub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/outboxtest"
	"github.com/fencepost-go/fencepost/publish/kafka"
	"github.com/fencepost-go/fencepost/sender"
)

// The (fake) cluster stops while a sender publishes, and comes back on the same port with its files: nothing is lost, each order key is in order, and since
// the process lives on, what was in flight is not there twice.
func TestBrokerRestarted(t *testing.T) {
	t.Parallel()
	const messages = 200
	dir := t.TempDir()
	first := cluster(t, kfake.SeedTopics(3, "orders"), kfake.DataDir(dir), kfake.SyncWrites())
	seeds := first.ListenAddrs()

	delivered, failed := make(chan struct{}, messages), make(chan struct{}, 100*messages)
	box := outboxtest.New(t, outbox.Config{Observer: &outbox.Observer{
		HandlerDone: func(_ context.Context, _ outbox.Message, outcome outbox.Outcome, _ time.Duration) {
			if outcome.Verdict() == outbox.VerdictDelivered {
				delivered <- struct{}{}
			} else {
				failed <- struct{}{}
			}
		},
	}})
	var effects []outbox.Effect
	for i := range messages {
		effects = append(effects, outbox.Effect{
			Consumer: "shop", Target: "orders", Kind: "order.paid", Key: fmt.Sprint(i), OrderKey: fmt.Sprint("customer/", i%10), Payload: []byte(fmt.Sprint(i)),
		})
	}
	outboxtest.Enqueue(t, box, effects...)
	shop, err := box.Consumer("shop", "orders", outbox.Policy{InitialDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxAttempts: 1000})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sender.New(box, shop, sender.Config{
		Poll:     100 * time.Millisecond,
		Handlers: sender.Handlers{"order.paid": publisher(t, client(t, seeds), kafkapub.Config{Timeout: 300 * time.Millisecond}).Handler()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	for range messages / 4 {
		<-delivered
	}
	first.Close()
	for range 3 {
		<-failed
	}
	second := cluster(t, kfake.DataDir(dir), kfake.Ports(portOf(t, seeds[0])))
	until(t, func() bool {
		page, err := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{State: outbox.StateDelivered, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Messages) == messages
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	seen, last := map[string]int{}, map[string]int{}
	for _, record := range stored(t, second, "orders") {
		var i int
		if _, err := fmt.Sscan(string(record.Value), &i); err != nil {
			t.Fatal(err)
		}
		key := string(record.Key)
		if before, there := last[key]; there && before > i {
			t.Errorf("%s: %d after %d", key, i, before)
		}
		last[key] = i
		seen[string(record.Value)]++
	}
	for i := range messages {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Errorf("message %d is stored %d times", i, n)
		}
	}
	details, err := box.Show(t.Context(), outbox.AllTenants, 1)
	if err != nil || !strings.HasPrefix(details.Result, "topic=orders partition=") {
		t.Errorf("settled with %q, %v", details.Result, err)
	}
}
