package sender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A link is one to the store over which each leased message takes that long. An answer that takes longer than the sender waits for it never
// comes, although what it tells of has happened.
type link struct {
	mu     sync.Mutex
	each   time.Duration
	limits []int32 // of the passes
}

func (l *link) after(ctx context.Context, call memdb.Call, err error) error {
	lease, ok := call.Params.(db.LeaseDueParams)
	if !ok {
		return err
	}
	l.mu.Lock()
	l.limits = append(l.limits, lease.MaxRows)
	took := l.each * time.Duration(lease.MaxRows)
	l.mu.Unlock()
	select {
	case <-time.After(took):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A pass that is too large for the link leases messages of which the sender never hears. It asks for less then, lest they die of it, and for
// more again when the link is quick.
func TestSlowLink(t *testing.T) {
	for name, each := range map[string]time.Duration{"a few at a time": time.Second, "one at a time": 6 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{MaxAttempts: 3}, func(b *bench) {
				slow := link{each: each}
				b.store.Hook(memdb.Hook{Before: b.before, After: slow.after})
				ids := b.enqueue(many(200)...)
				stop := b.run(b.sender(Config{Slots: 100, Handlers: doing(succeed)}))
				wait(time.Hour)
				outcomes := b.outcomes()
				for _, id := range ids {
					if outcomes[id] != "delivered" {
						b.Errorf("message %d is %q", id, outcomes[id])
					}
				}
				slow.mu.Lock()
				if failed := slices.IndexFunc(slow.limits, func(n int32) bool { return time.Duration(n)*each < 10*time.Second }); failed > 3 {
					b.Errorf("%d passes were too large: %v", failed, slow.limits)
				} else if i := slices.IndexFunc(slow.limits[failed:], func(n int32) bool { return time.Duration(n)*each >= 10*time.Second }); i >= 0 {
					b.Errorf("a pass was too large again: %v", slow.limits)
				}
				slow.each, slow.limits = 0, nil
				slow.mu.Unlock()
				b.enqueue(many(1_000)...)
				wait(time.Minute)
				if slices.Max(slow.limits) < 80 {
					b.Errorf("over a quick link it asked for %v", slow.limits)
				}
				if err := stop(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// A lease that failed makes passes smaller, and takes nothing from an order key for good: its next message follows each settle as before.
func TestOrderKeysFollowAgainAfterAFailedLease(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		b.failing("LeaseDue", errors.New("down"))
		b.enqueue(effect("a"))
		wait(30 * time.Second)
		b.failing("LeaseDue", nil)
		wait(time.Minute)
		var effects []outbox.Effect
		for i := range 20 {
			effects = append(effects, effect(fmt.Sprint(i), func(e *outbox.Effect) { e.OrderKey = "o" }))
		}
		ids := b.enqueue(effects...)
		wait(time.Second) // two scans
		if got := b.outcomes()[ids[19]]; got != "delivered" {
			b.Errorf("the last of twenty is %q", got)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}
