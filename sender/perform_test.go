package sender

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

type silentError struct{}

func (*silentError) Error() string { return "" }

var noMap map[string]int

// However a handler ends, its message is tried again with a reason, and the others are performed.
// Shows: S2.7
func TestHandlersThatMisbehave(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(context.Context) error
		want string
	}{
		"panic":             {func(context.Context) error { panic("boom") }, "handler panicked: boom"},
		"panic of an error": {func(context.Context) error { panic(errors.New("boom")) }, "handler panicked: boom"},
		"panic of nil":      {func(context.Context) error { panic(nil) }, "handler panicked: panic called with nil argument"},
		"nil map": {func(context.Context) error {
			noMap["a"] = 1
			return nil
		}, "handler panicked: assignment to entry in nil map"},
		"Goexit": {func(context.Context) error {
			runtime.Goexit()
			return nil
		}, "handler ended its goroutine (runtime.Goexit)"},
		"silent error":    {func(context.Context) error { return &silentError{} }, "*sender.silentError"},
		"nil in an error": {func(context.Context) error { return (*outbox.InvalidError)(nil) }, "*outbox.InvalidError whose Error method panicked"},
		"NUL and junk":    {func(context.Context) error { return errors.New("a\x00b\xff") }, "a\ufffdb\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				ids := b.enqueue(effect("bad"), effect("good"))
				counts := b.runOnce(b.sender(Config{Handlers: doing(func(ctx context.Context, m outbox.Message) error {
					if m.Key == "bad" {
						return test.do(ctx)
					}
					return nil
				})}))
				if counts.Retried != 1 || counts.Delivered != 1 {
					b.Errorf("counted %+v", counts)
				}
				row := b.row(ids[0])
				if !strings.HasPrefix(row.LastError, test.want) || row.Attempt != 1 {
					b.Errorf("recorded %q with %d attempts, want %q", row.LastError, row.Attempt, test.want)
				}
				if strings.Contains(row.LastError, ".go:") {
					b.Error("the settlement holds the stack")
				}
				if panics := b.log.lines("handler panicked"); strings.Contains(test.want, "panicked: ") != (len(panics) == 1) ||
					len(panics) == 1 && !strings.Contains(panics[0], "perform_test.go") {
					b.Errorf("logged %v", panics)
				}
			})
		})
	}
}

func TestDoResultIsKept(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		ids := b.enqueue(effect("good"), effect("bad"))
		counts := b.runOnce(b.sender(Config{Handlers: Handlers{"charge": {DoResult: func(_ context.Context, m outbox.Message) (string, error) {
			if m.Key == "bad" {
				return "half done", errors.New("refused")
			}
			return "receipt 7", nil
		}}}}))
		if got := b.store.Dump().Settlements; len(got) != 1 || got[0].MessageID != ids[0] || got[0].Result != "receipt 7" || counts.Retried != 1 {
			b.Errorf("settled %+v, counted %+v", got, counts)
		}
	})
}

// Shows: S4.23
func TestTimeout(t *testing.T) {
	hang := func(ctx context.Context, _ outbox.Message) error {
		<-ctx.Done()
		if context.Cause(ctx) != ErrTimeout || ctx.Err() != context.DeadlineExceeded {
			panic("cause " + context.Cause(ctx).Error())
		}
		return ctx.Err()
	}
	t.Run("is a failure", func(t *testing.T) {
		inBubble(t, outbox.Policy{}, func(b *bench) {
			b.enqueue(effect("a"))
			began := time.Now()
			counts := b.runOnce(b.sender(Config{Handlers: Handlers{"charge": {Do: hang, Timeout: 3 * time.Second}}}))
			if took := time.Since(began); counts.Retried != 1 || took < 3*time.Second || took > 4*time.Second {
				b.Errorf("counted %+v after %v", counts, took)
			}
		})
	})
	for how, do := range map[string]func(context.Context, outbox.Message) error{
		"returns": hang,
		"panics":  func(ctx context.Context, m outbox.Message) error { panic(hang(ctx, m)) },
		"ends its goroutine": func(ctx context.Context, m outbox.Message) error {
			defer runtime.Goexit()
			return hang(ctx, m)
		},
	} {
		t.Run("is unknown where the kind says so and the handler "+how, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				b.enqueue(effect("a"))
				counts := b.runOnce(b.sender(Config{Handlers: Handlers{"charge": {Do: do, Timeout: time.Second, UnknownOnTimeout: true}}}))
				if counts.Parked != 1 {
					b.Errorf("counted %+v", counts)
				}
			})
		})
	}
	t.Run("says nothing of an error before it", func(t *testing.T) {
		inBubble(t, outbox.Policy{}, func(b *bench) {
			b.enqueue(effect("a"))
			fail := func(context.Context, outbox.Message) error { return errors.New("refused") }
			if counts := b.runOnce(b.sender(Config{Handlers: Handlers{"charge": {Do: fail, Timeout: time.Second, UnknownOnTimeout: true}}})); counts.Retried != 1 {
				b.Errorf("counted %+v", counts)
			}
		})
	})
}

type contextKey struct{}

func TestHandlersGetTheValuesOfRun(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(effect("a"))
		s := b.sender(Config{Handlers: doing(func(ctx context.Context, _ outbox.Message) error {
			if ctx.Value(contextKey{}) != "trace" {
				return errors.New("no value")
			}
			return nil
		})})
		counts, err := s.RunOnce(context.WithValue(b.Context(), contextKey{}, "trace"))
		if err != nil || counts.Delivered != 1 {
			b.Errorf("counted %+v, %v", counts, err)
		}
	})
}

// What an observer puts into a handler's context is there for the handler and when it is done, and the lease still ends the context.
func TestHandlersGetTheValuesOfObservers(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		type key struct{}
		var done any
		b.observe(&outbox.Observer{
			HandlerStarting: func(ctx context.Context, m outbox.Message) context.Context {
				return context.WithValue(ctx, key{}, "value of "+m.Key)
			},
			HandlerDone: func(ctx context.Context, _ outbox.Message, _ outbox.Outcome, _ time.Duration) {
				done = ctx.Value(key{})
			},
		})
		var value any
		var cause error
		stop := b.run(b.sender(Config{Handlers: doing(func(ctx context.Context, _ outbox.Message) error {
			value = ctx.Value(key{})
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})}))
		b.enqueue(effect("a"))
		wait(time.Second)
		b.pause(outbox.PauseCancel)
		wait(time.Minute)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if value != "value of a" || done != value || cause != outbox.ErrPaused {
			b.Errorf("the handler saw %v and %v, then the observer %v", value, cause, done)
		}
	})
}

// Shows: S1.4
func TestJSON(t *testing.T) {
	t.Parallel()
	type order struct {
		ID    int
		Total string
	}
	var got order
	do := JSON(func(_ context.Context, _ outbox.Message, o order) error {
		got = o
		return nil
	})
	if err := do(t.Context(), outbox.Message{Payload: []byte(`{"ID": 7, "Total": "12.50"}`)}); err != nil || got != (order{7, "12.50"}) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	for _, payload := range []string{``, `{`, `{"ID": "secret"}`, `[]`, `{"ID": 1} secret`, `{"ID": 123456789012345678901234567890}`, "\xff"} {
		err := do(t.Context(), outbox.Message{Payload: []byte(payload)})
		if outbox.OutcomeOf(err).Verdict() != outbox.VerdictPermanent {
			t.Errorf("%s: %v is not permanent", payload, err)
		} else if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "1234567890") {
			t.Errorf("the reason quotes the payload: %s", text)
		}
	}
}
