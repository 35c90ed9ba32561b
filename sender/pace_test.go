package sender

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

func TestAhead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		took []time.Duration
		want int
	}{
		{"nothing has run", nil, 0},
		{"not every slot has proved itself", []time.Duration{1, 1, 1}, 0},
		{"at once", []time.Duration{0, 0, 0, 0}, 100},
		{"short", []time.Duration{100 * time.Millisecond, 0, 0, 100 * time.Millisecond}, 40},
		{"shorter than a thirtieth", []time.Duration{time.Second, time.Second, time.Second, time.Second}, 4},
		{"long", []time.Duration{0, 0, 0, 1100 * time.Millisecond}, 0},
	} {
		p := pace{lease: 30 * time.Second}
		for _, d := range test.took {
			p.took(d)
		}
		if got := p.ahead(4, 100); got != test.want {
			t.Errorf("%s: %d may wait, want %d", test.name, got, test.want)
		}
	}
}

func TestPaceRecovers(t *testing.T) {
	t.Parallel()
	p := pace{lease: 30 * time.Second}
	p.took(time.Minute)
	for range 200 {
		p.took(time.Millisecond)
	}
	if p.ahead(4, 100) == 0 {
		t.Error("one long handler is remembered for ever")
	}
}

// Short handlers are not fed one message a lease.
func TestLeasesAreFewWhereHandlersAreShort(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(many(1000)...)
		counts := b.runOnce(b.sender(Config{Slots: 4, Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(time.Millisecond)
			return nil
		})}))
		if n := b.called("LeaseDue"); counts.Delivered != 1000 || n > 40 {
			b.Errorf("%d leases for %d deliveries", n, counts.Delivered)
		}
	})
}

// Messages that wait behind handlers which turn out long are given back in time, and spend no attempt.
func TestC06WaitingMessagesAreGivenBack(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		calls := 0
		s := b.sender(Config{Slots: 1, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			if m.Attempt != 1 {
				b.Errorf("%v", m)
			}
			if calls++; calls > 20 {
				time.Sleep(25 * time.Second)
			}
			return ctx.Err()
		})})
		b.enqueue(many(60)...)
		counts := b.runOnce(s)
		if counts.Delivered != 60 || counts.Released < 10 || calls != 60 {
			b.Errorf("%d calls, counted %+v", calls, counts)
		}
	})
}
