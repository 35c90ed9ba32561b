package sender

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// perish is a worker that dies with all that it leased.
func (b *bench) perish(messages int) {
	b.Helper()
	lanes := []outbox.PlannedLane{{Lane: outbox.Lane{Kind: "charge"}}}
	plan := outbox.LeasePlan{Consumer: b.consumer, For: time.Second, Lanes: lanes, Quota: messages, Limit: messages}
	if pass, err := b.box.LeaseLanes(b.Context(), plan); err != nil || len(pass.Messages) != messages {
		b.Fatal(len(pass.Messages), err)
	}
	wait(2 * time.Second)
}

// Messages that lost all leases but their last are performed one at a time, with nothing else held: one that kills its worker then takes
// nobody along.
func TestC07SuspectsRunAlone(t *testing.T) {
	inBubble(t, outbox.Policy{MaxAttempts: 3}, func(b *bench) {
		b.enqueue(many(20)...)
		b.perish(20)
		b.perish(20)
		b.enqueue(effect("fresh 1"), effect("fresh 2"))
		var performed journal
		counts := b.runOnce(b.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.note(m)
			if held := b.live(); m.Unsure && held > 1 {
				b.Errorf("%d messages held while %s ran", held, m.Key)
			}
			time.Sleep(time.Second)
			return nil
		})}))
		if counts.Delivered != 22 || counts.Dead != 0 {
			b.Errorf("counted %+v, performed %v", counts, performed.list())
		}
	})
}

// A suspect that runs for long is left alone for a third of the lease only, and does not wait for ever for others that do.
func TestSuspectsDoNotHoldUpOthers(t *testing.T) {
	inBubble(t, outbox.Policy{MaxAttempts: 2}, func(b *bench) {
		b.enqueue(many(4)...)
		b.perish(4)
		var performed journal
		began := time.Now()
		stop := b.run(b.sender(Config{Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			performed.note(m)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Hour):
				return nil
			}
		})}))
		wait(2 * time.Minute)
		if got := performed.list(); len(got) != 4 || !slices.IsSorted(got) {
			b.Errorf("after %v performed %v", time.Since(began), got)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// Messages that are unsure since their outcome was Unknown run beside each other on their last attempt too.
func TestUnknownOutcomesAreNoSuspects(t *testing.T) {
	inBubble(t, outbox.Policy{MaxAttempts: 2, InitialDelay: time.Second, Jitter: outbox.NoJitter}, func(b *bench) {
		var asked target
		handler := Handler{
			Do:        func(context.Context, outbox.Message) error { return outbox.Unknown(errors.New("no answer")) },
			Reconcile: func(ctx context.Context, m outbox.Message) (Outcome, error) { return Delivered, asked.do(ctx, m) },
		}
		b.enqueue(many(8)...)
		stop := b.run(b.sender(Config{Handlers: Handlers{"charge": handler}}))
		wait(10 * time.Second)
		if _, atOnce := asked.read(); len(b.outcomes()) != 8 || atOnce != 8 {
			b.Errorf("settled %v, %d at once", b.outcomes(), atOnce)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}
