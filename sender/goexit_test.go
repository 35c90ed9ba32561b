package sender

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// An observer that ends the goroutine it is called in, as FailNow of a test does, loses neither a slot nor the end of the run.
func TestObserversThatEndTheirGoroutine(t *testing.T) {
	for name, observer := range map[string]outbox.Observer{
		"HandlerStarting": {HandlerStarting: func(context.Context, outbox.Message) context.Context {
			runtime.Goexit()
			return nil
		}},
		"HandlerDone": {HandlerDone: func(context.Context, outbox.Message, outbox.Outcome, time.Duration) { runtime.Goexit() }},
		"Leased":      {Leased: func(context.Context, []outbox.Message) { runtime.Goexit() }},
		"Settled":     {Settled: func(context.Context, outbox.Message, outbox.Outcome, outbox.Result) { runtime.Goexit() }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				b.observe(&observer)
				stop := b.run(b.sender(Config{Slots: 1, Handlers: doing(succeed)}))
				b.enqueue(effect("a"), effect("b"))
				wait(5 * time.Minute)
				ended := make(chan error, 1)
				go func() { ended <- stop() }()
				wait(time.Minute)
				select {
				case <-ended:
				default:
					b.Fatal("the run does not end")
				}
				if done := len(b.outcomes()); (name == "HandlerDone" || name == "Settled") && done != 2 {
					b.Errorf("%d of 2 messages are settled", done)
				}
			})
		})
	}
}
