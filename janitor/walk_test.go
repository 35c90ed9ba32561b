package janitor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
)

// A batch that times out is halved; the next tick tries a larger one again.
func TestSmallerAfterTimeout(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(300, outbox.Delivered())
		time.Sleep(8 * day)
		b.fail = func(call string) error {
			if n := len(b.limit); call == "PurgeDelivered" && b.limit[n-1] > 64 {
				return fmt.Errorf("%w: canceling statement", db.ErrTimeout)
			}
			return nil
		}
		j := b.janitor(janitor.Config{Batch: 256, Pause: janitor.NoPause})
		if got := b.runOnce(j); got.Purged.Delivered != 300 {
			b.Errorf("%+v", got)
		}
		if want := []int32{256, 128, 64, 64, 64, 64, 64, 64}; !slices.Equal(b.limit, want) {
			b.Errorf("looked at %v rows, want %v", b.limit, want)
		}
	})
}

// A statement that never answers ends with its own deadline, not the janitor.
func TestStatementTimeout(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(1, outbox.Delivered())
		time.Sleep(8 * day)
		b.block = func(ctx context.Context) { <-ctx.Done() }
		b.fail = func(string) error { return context.DeadlineExceeded }
		j := b.janitor(janitor.Config{Batch: 1, Timeout: time.Second})
		began := time.Now()
		if _, err := j.RunOnce(b.Context()); !errors.Is(err, context.DeadlineExceeded) {
			b.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			b.Errorf("took %v", took)
		}
	})
}

// A tick goes on where old rows end and does not read the younger ones again; every hour it reads all.
func TestGoesOnWhereOldRowsEnd(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(53, outbox.Delivered())
		time.Sleep(7*day - 10*time.Minute + time.Second)
		b.settle(947, outbox.Delivered())
		j := b.janitor(janitor.Config{Batch: 10, Every: time.Minute})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- j.Run(ctx) }()
		steps := func(after time.Duration) int {
			time.Sleep(after)
			b.mu.Lock()
			defer b.mu.Unlock()
			n := len(b.limit)
			b.limit = nil
			return n
		}
		for _, want := range []struct {
			after time.Duration
			steps int
		}{
			{30 * time.Second, 101}, // all of them
			{time.Minute, 3},
			{8 * time.Minute, 8 * 3},
			{time.Minute, 6 + 3},          // the first are old now
			{50 * time.Minute, 49*3 + 96}, // one of these comes an hour after the first
		} {
			if got := steps(want.after); got != want.steps {
				b.Errorf("%v later %d steps, want %d", want.after, got, want.steps)
			}
		}
		cancel()
		<-ended
		if b.left() != 947 {
			b.Errorf("%d left", b.left())
		}
	})
}

// What becomes old is removed by the next tick, however little it is beside what is younger.
func TestEachTickRemovesWhatBecameOld(t *testing.T) {
	inBubble(t, func(b *bench) {
		for range 30 {
			b.settle(1, outbox.Delivered())
			time.Sleep(time.Minute)
		}
		time.Sleep(7*day - 10*time.Minute + time.Second)
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- b.janitor(janitor.Config{Batch: 20}).Run(ctx) }()
		for minute := range 9 {
			time.Sleep(time.Second)
			if want := 9 - minute; b.left() != want {
				b.Errorf("%d minutes later %d are left, want %d", minute, b.left(), want)
			}
			time.Sleep(59 * time.Second)
		}
		cancel()
		<-ended
	})
}

// At the front of the table statements time out at any size, as beside dead entries that an old snapshot keeps; what is old further on is
// removed all the same.
func TestTimeoutsAtTheFrontKeepNothing(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(10, outbox.Delivered())
		time.Sleep(8 * day)
		j := b.janitor(janitor.Config{Batch: 4})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- j.Run(ctx) }()
		time.Sleep(2*time.Minute + time.Second) // not at a tick
		b.settle(10, outbox.Delivered())
		time.Sleep(7*day - time.Minute)
		b.locked(func() {
			b.failAt = func(arg any) error {
				if p, ok := arg.(db.PurgeDeliveredParams); ok && p.AfterID == 0 {
					return fmt.Errorf("%w: canceling statement", db.ErrTimeout)
				}
				return nil
			}
		})
		time.Sleep(2 * time.Hour)
		cancel()
		if <-ended; b.left() != 0 {
			b.Errorf("%d are left", b.left())
		}
	})
}

func TestStopEndsBetweenBatches(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(100, outbox.Delivered())
		time.Sleep(8 * day)
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- b.janitor(janitor.Config{Batch: 10, Pause: time.Minute}).Run(ctx) }()
		time.Sleep(90 * time.Second) // in the second pause
		cancel()
		if err := <-ended; err != nil || b.left() != 80 {
			b.Errorf("%v, %d left", err, b.left())
		}
		if len(b.done) > 0 || strings.Contains(b.log.String(), "failed") {
			b.Errorf("a stop is neither a success nor a failure: told of %v, logged %s", b.done, b.log.String())
		}
	})
}
