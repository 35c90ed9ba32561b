package sender

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A target notes when it is called and how many calls there are at once, since it was last read.
type target struct {
	began time.Time

	mu              sync.Mutex
	down            bool
	calls           []time.Duration
	running, atOnce int
}

func (t *target) do(context.Context, outbox.Message) error {
	t.mu.Lock()
	t.calls = append(t.calls, time.Since(t.began))
	t.running++
	t.atOnce = max(t.atOnce, t.running)
	t.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.down {
		return outbox.Unavailable(errors.New("connection refused"))
	}
	return nil
}

func (t *target) read() (calls []time.Duration, atOnce int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls, atOnce = t.calls, t.atOnce
	t.calls, t.atOnce = nil, 0
	return calls, atOnce
}

func (t *target) recover() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down = false
}

// While a target is unavailable its lane has one probe at a time, ever less often, that spends no attempt; other lanes go on; and the first
// probe that reaches the target lets all the others through.
func TestUnavailableTarget(t *testing.T) {
	policy := outbox.Policy{InitialDelay: 10 * time.Second, MaxDelay: time.Minute, Jitter: outbox.NoJitter}
	inBubble(t, policy, func(b *bench) {
		target := &target{began: time.Now(), down: true}
		s := b.sender(Config{Handlers: Handlers{"charge": {Do: target.do}, "email": {Do: succeed}}})
		b.enqueue(many(100)...)
		stop := b.run(s)
		wait(time.Second)
		if calls, atOnce := target.read(); len(calls) != 16 || atOnce != 16 {
			b.Errorf("%d handlers started before the first was back", len(calls))
		}
		wait(5 * time.Minute)
		// Delays of 10, 20, 40, then 60 s, and a poll each until the lane is looked at.
		want := []time.Duration{10, 31, 71, 132, 192, 253}
		probes, atOnce := target.read()
		if len(probes) != len(want) {
			b.Fatalf("probed after %v, want %v", probes, want)
		}
		for i := range want {
			if off := probes[i] - want[i]*time.Second; off < -2*time.Second || off > 2*time.Second {
				b.Errorf("probed after %v, want %v", probes, want)
			}
		}
		if atOnce != 1 {
			b.Errorf("%d probes at once", atOnce)
		}
		email := b.enqueue(effect("mail", func(e *outbox.Effect) { e.Kind = "email" }))[0]
		wait(time.Second)
		if b.outcomes()[email] != "delivered" {
			b.Error("another lane was held up")
		}
		for _, q := range b.store.Dump().Queue {
			if q.Attempt != 0 {
				b.Errorf("message %d spent %d attempts", q.MessageID, q.Attempt)
			}
		}
		target.recover()
		wait(2 * time.Minute)
		if got := b.outcomes(); len(got) != 101 {
			b.Errorf("%d settled", len(got))
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// What waits for a slot when the target becomes unavailable is given back.
func TestUnavailableTargetKeepsNothingWaiting(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		calls := 0
		s := b.sender(Config{Slots: 1, Batch: 50, Handlers: doing(func(context.Context, outbox.Message) error {
			if calls++; calls > 10 {
				return outbox.Unavailable(errors.New("connection refused"))
			}
			time.Sleep(time.Millisecond)
			return nil
		})})
		b.enqueue(many(60)...)
		counts := b.runOnce(s)
		if calls != 11 || counts.Delivered != 10 || counts.Retried != 1 || counts.Released == 0 || b.leased() != 0 {
			b.Errorf("%d calls, counted %+v", calls, counts)
		}
	})
}

// The probe waits for its delay, whatever became of the settle.
func TestProbeWaitsThoughTheSettleWasLost(t *testing.T) {
	for name, lose := range map[string]func(*bench, outbox.Message){
		"stale": func(b *bench, m outbox.Message) {
			if _, err := b.box.Cancel(b.Context(), outbox.AllTenants, []int64{m.ID}, outbox.By{Actor: "op", Reason: "wrong"}); err != nil {
				b.Error(err)
			}
		},
		"unanswered": func(b *bench, _ outbox.Message) { b.failing("SettleRetry", errDown) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{InitialDelay: 2 * time.Minute, Jitter: outbox.NoJitter}, func(b *bench) {
				b.enqueue(many(3)...)
				var performed journal
				stop := b.run(b.sender(Config{Slots: 1, Handlers: doing(func(_ context.Context, m outbox.Message) error {
					performed.note(m)
					lose(b, m)
					return outbox.Unavailable(errors.New("connection refused"))
				})}))
				wait(time.Minute) // the lease is over
				b.failing("SettleRetry", nil)
				wait(59 * time.Second)
				if got := performed.list(); len(got) != 1 {
					b.Errorf("within the delay performed %v", got)
				}
				wait(3 * time.Second)
				if got := performed.list(); len(got) != 2 {
					b.Errorf("after the delay performed %v", got)
				}
				b.failing("SettleRetry", nil)
				if err := stop(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
