package sender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
		"Rescan":      {Rescan: func(context.Context, *outbox.Consumer, time.Duration) { runtime.Goexit() }},
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
				if done := len(b.outcomes()); name != "HandlerStarting" && done != 2 {
					b.Errorf("%d of 2 messages are settled", done)
				}
			})
		})
	}
}

type endsItsGoroutine struct{}

func (endsItsGoroutine) String() string { runtime.Goexit(); return "" }

// Whatever else of the application ends the goroutine it is called in, messages go on being performed and recorded.
func TestCodeThatEndsItsGoroutine(t *testing.T) {
	fail := func(context.Context, outbox.Message) error { return errors.New("no") }
	redact := func(string) string { runtime.Goexit(); return "" }
	policy := outbox.Policy{MaxAttempts: 3}
	faulty := policy
	faulty.Backoff = func(int) time.Duration { runtime.Goexit(); return 0 }
	for name, test := range map[string]struct {
		policy outbox.Policy
		redact func(string) string
		do     func(context.Context, outbox.Message) error
	}{
		"backoff":                {policy: faulty, do: fail},
		"backoff of unavailable": {policy: faulty, do: func(context.Context, outbox.Message) error { return outbox.Unavailable(errors.New("no")) }},
		"redactor":               {policy: policy, redact: redact, do: fail},
		"redactor of a panic":    {policy: policy, redact: redact, do: func(context.Context, outbox.Message) error { panic("no") }},
		"text of a panic":        {policy: policy, do: func(context.Context, outbox.Message) error { panic(endsItsGoroutine{}) }},
		"logger":                 {policy: policy, do: fail},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.policy, func(b *bench) {
				config := outbox.Config{Logger: b.log.logger(), Redact: test.redact}
				if name == "logger" {
					config.Logger = slog.New(faultyLog{config.Logger.Handler(), runtime.Goexit})
				}
				b.open(config)
				stop := b.run(b.sender(Config{Slots: 1, Handlers: Handlers{"charge": {Do: succeed}, "report": {Do: test.do}}}))
				bad := b.enqueue(effect("bad", func(e *outbox.Effect) { e.Kind = "report" }))[0]
				wait(time.Second)
				good := b.enqueue(effect("good"))[0]
				wait(time.Second)
				if b.outcomes()[good] != "delivered" {
					b.Error("the next message is not delivered")
				}
				wait(10 * time.Minute)
				if name != "backoff of unavailable" && b.outcomes()[bad] != "dead" {
					b.Errorf("after 3 attempts the message is %+v", b.row(bad))
				}
				if err := stop(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// faultyLog is a log handler that fails.
type faultyLog struct {
	slog.Handler
	fail func()
}

func (f faultyLog) Handle(context.Context, slog.Record) error {
	f.fail()
	return nil
}

func (f faultyLog) WithAttrs([]slog.Attr) slog.Handler { return f }

// A log handler that panics is none of the sender's business.
func TestLogHandlerThatPanics(t *testing.T) {
	inBubble(t, outbox.Policy{MaxAttempts: 1}, func(b *bench) {
		contained := make(chan string, 10)
		b.open(outbox.Config{
			Logger:   slog.New(faultyLog{b.log.logger().Handler(), func() { panic("disk full") }}),
			Observer: &outbox.Observer{Contained: func(what string, problem any) { contained <- fmt.Sprint(what, " ", problem) }},
		})
		id := b.enqueue(effect("a"))[0]
		b.runOnce(b.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error { panic("no") })}))
		if got := b.outcomes()[id]; got != "dead" || len(contained) != 2 || <-contained != "Config.Logger panicked: disk full" {
			b.Errorf("the message is %s, %d records were contained", got, len(contained))
		}
	})
}
