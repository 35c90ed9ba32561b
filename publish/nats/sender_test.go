package natspub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/outboxtest"
	"github.com/fencepost-go/fencepost/publish/nats"
	"github.com/fencepost-go/fencepost/sender"
)

// The server stops while a sender publishes, and comes back on the same port with its files: nothing is lost, and within the stream's window nothing is
// there twice.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	const messages = 300
	config := options(t.TempDir())
	first := start(t, config)
	js := connect(t, first)
	stream(t, js, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}, Duplicates: 10 * time.Minute})
	arrived, err := js.Conn().SubscribeSync("orders")
	if err != nil {
		t.Fatal(err)
	}

	failed := make(chan struct{}, 10*messages)
	box := outboxtest.New(t, outbox.Config{Observer: &outbox.Observer{
		HandlerDone: func(_ context.Context, _ outbox.Message, outcome outbox.Outcome, _ time.Duration) {
			if outcome.Verdict() != outbox.VerdictDelivered {
				failed <- struct{}{}
			}
		},
	}})
	var effects []outbox.Effect
	for i := range messages {
		effects = append(effects, outbox.Effect{Consumer: "shop", Target: "orders", Kind: "order.paid", Key: fmt.Sprint(i), Payload: []byte(fmt.Sprint(i))})
	}
	outboxtest.Enqueue(t, box, effects...)
	shop, err := box.Consumer("shop", "orders", outbox.Policy{InitialDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxAttempts: 1000})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sender.New(box, shop, sender.Config{
		Poll: 100 * time.Millisecond, Handlers: sender.Handlers{"order.paid": publisher(t, js, natspub.Config{Timeout: time.Second}).Handler()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	for range messages / 3 {
		if _, err := arrived.NextMsg(patience); err != nil {
			t.Fatal(err)
		}
	}
	stop(first)
	for range 3 {
		<-failed
	}
	config.Port = portOf(t, first.ClientURL())
	second := start(t, config)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		page, err := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{State: outbox.StateDelivered, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Messages) == messages {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("delivered %d", len(page.Messages))
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	orders, err := connect(t, second).Stream(t.Context(), "ORDERS")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, m := range stored(t, orders) {
		seen[string(m.Data)]++
	}
	for i := range messages {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Errorf("message %d is stored %d times", i, n)
		}
	}
	details, err := box.Show(t.Context(), outbox.AllTenants, 1)
	if err != nil || !strings.HasPrefix(details.Result, "stream=ORDERS sequence=") {
		t.Errorf("settled with %q, %v", details.Result, err)
	}
}

func portOf(t testing.TB, url string) (port int) {
	t.Helper()
	if _, err := fmt.Sscanf(url, "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	return port
}
