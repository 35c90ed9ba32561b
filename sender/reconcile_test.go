package sender

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// After an Unknown outcome the kind is asked first, and performs again only when the effect is known not to have happened.
// Shows: S4.23
func TestReconcile(t *testing.T) {
	lost := outbox.Unknown(errors.New("no answer"))
	for name, test := range map[string]struct {
		answers []func() (Outcome, error) // of Reconcile, in turn
		calls   []string                  // want
		final   string                    // the state at the end
	}{
		"delivered": {
			[]func() (Outcome, error){func() (Outcome, error) { return Delivered, nil }},
			[]string{"do", "reconcile"}, "delivered",
		},
		"failed": {
			[]func() (Outcome, error){func() (Outcome, error) { return Failed, nil }},
			[]string{"do", "reconcile", "do"}, "delivered",
		},
		"unknown, then delivered": {
			[]func() (Outcome, error){
				func() (Outcome, error) { return Unknown, nil },
				func() (Outcome, error) { return Delivered, nil },
			},
			[]string{"do", "reconcile", "reconcile"}, "delivered",
		},
		"an error, then failed": {
			[]func() (Outcome, error){
				func() (Outcome, error) { return Delivered, errors.New("ledger is down") },
				func() (Outcome, error) { return Failed, nil },
			},
			[]string{"do", "reconcile", "reconcile", "do"}, "delivered",
		},
		"a panic, then delivered": {
			[]func() (Outcome, error){
				func() (Outcome, error) { panic("boom") },
				func() (Outcome, error) { return Delivered, nil },
			},
			[]string{"do", "reconcile", "reconcile"}, "delivered",
		},
		"an error each time": {
			[]func() (Outcome, error){func() (Outcome, error) { return Failed, outbox.Permanent(errors.New("ledger is down")) }},
			[]string{"do", "reconcile", "reconcile", "reconcile"}, "parked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{MaxAttempts: 4, InitialDelay: time.Second}, func(b *bench) {
				var calls []string
				asked := 0
				s := b.sender(Config{Handlers: Handlers{"charge": {
					Do: func(context.Context, outbox.Message) error {
						calls = append(calls, "do")
						if len(calls) == 1 {
							return lost
						}
						return nil
					},
					Reconcile: func(context.Context, outbox.Message) (Outcome, error) {
						calls = append(calls, "reconcile")
						answer := test.answers[min(asked, len(test.answers)-1)]
						asked++
						return answer()
					},
				}}})
				id := b.enqueue(effect("a"))[0]
				for range 5 {
					b.runOnce(s)
					wait(time.Minute)
				}
				if !slices.Equal(calls, test.calls) {
					b.Errorf("called %v, want %v", calls, test.calls)
				}
				if details, err := b.box.Show(b.Context(), outbox.AllTenants, id); err != nil || string(details.State) != test.final {
					b.Errorf("is %v (%v), want %v", details.State, err, test.final)
				}
			})
		})
	}
}

// A lease that was lost leaves it open how far its handler came.
func TestReconcileAfterALostLease(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(effect("a"))
		lanes := []outbox.PlannedLane{{Lane: outbox.Lane{Kind: "charge"}}}
		plan := outbox.LeasePlan{Consumer: b.consumer, For: time.Second, Lanes: lanes, Quota: 1, Limit: 1}
		if pass, err := b.box.LeaseLanes(b.Context(), plan); err != nil || len(pass.Messages) != 1 {
			b.Fatal(pass, err)
		}
		wait(2 * time.Second) // the process that leased it is gone
		asked := false
		counts := b.runOnce(b.sender(Config{Handlers: Handlers{"charge": {
			Do: func(context.Context, outbox.Message) error { return errors.New("performed twice") },
			Reconcile: func(_ context.Context, m outbox.Message) (Outcome, error) {
				asked = m.Unsure && m.Attempt == 2
				return Delivered, nil
			},
		}}}))
		if !asked || counts.Delivered != 1 {
			b.Errorf("asked: %v, counted %+v", asked, counts)
		}
	})
}

// A reconciliation that a stop interrupts spends no attempt, and its message stays unsure.
func TestStopInterruptsReconcile(t *testing.T) {
	inBubble(t, outbox.Policy{InitialDelay: time.Second}, func(b *bench) {
		id := b.enqueue(effect("a"))[0]
		s := b.sender(Config{Handlers: Handlers{"charge": {
			Do: func(context.Context, outbox.Message) error { return outbox.Unknown(errors.New("no answer")) },
			Reconcile: func(ctx context.Context, _ outbox.Message) (Outcome, error) {
				<-ctx.Done()
				return Unknown, ctx.Err()
			},
		}}})
		b.runOnce(s)
		stop := b.run(s)
		wait(3 * time.Second)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if row := b.row(id); row.Attempt != 1 || !row.Unsure || strings.Contains(row.LastError, "context") {
			b.Errorf("left attempt %d, unsure %v, %q", row.Attempt, row.Unsure, row.LastError)
		}
	})
}

// Nobody knows how far a handler came that a stop interrupted.
func TestStopInterruptsAnExecution(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		id := b.enqueue(effect("a"))[0]
		var calls []string
		s := b.sender(Config{Handlers: Handlers{"charge": {
			Do: func(ctx context.Context, _ outbox.Message) error {
				calls = append(calls, "do")
				<-ctx.Done()
				return ctx.Err()
			},
			Reconcile: func(context.Context, outbox.Message) (Outcome, error) {
				calls = append(calls, "reconcile")
				return Delivered, nil
			},
		}}})
		stop := b.run(s)
		wait(time.Second)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if row := b.row(id); row.Attempt != 0 || !row.Unsure {
			b.Errorf("left attempt %d, unsure %v", row.Attempt, row.Unsure)
		}
		b.runOnce(s)
		if !slices.Equal(calls, []string{"do", "reconcile"}) {
			b.Errorf("called %v", calls)
		}
	})
}
