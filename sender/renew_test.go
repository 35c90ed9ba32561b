package sender

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// An ending is why and when the context of a handler ended that runs until then.
type ending struct {
	mu    sync.Mutex
	cause error
	at    time.Time
}

func (e *ending) do(ctx context.Context, _ outbox.Message) error {
	<-ctx.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cause, e.at = context.Cause(ctx), time.Now()
	return ctx.Err()
}

func (e *ending) get() (at time.Time, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at, e.cause
}

// Shows: S4.8
func TestRunningHandlersAreRenewedTogether(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(5 * time.Minute)
			return nil
		})}))
		b.enqueue(effect("a"), effect("b"), effect("c"))
		wait(9 * time.Second)
		if n := b.called("Renew"); n != 0 {
			b.Errorf("%d renewals before a third of the lease", n)
		}
		for range 28 {
			wait(10 * time.Second)
			for _, q := range b.store.Dump().Queue {
				if left := time.Until(q.LeasedUntil); left < 20*time.Second {
					b.Fatalf("%v of a lease left", left)
				}
			}
		}
		if n := b.called("Renew"); n < 28 || n > 29 {
			b.Errorf("%d renewals for three messages in 289 s", n)
		}
		wait(time.Minute)
		if got := b.outcomes(); len(got) != 3 || b.leased() != 0 {
			b.Errorf("settled %v", got)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// A lease that cannot be renewed ends for the handler before it does for others, whether the database refuses or does not answer.
// Shows: S4.5
func TestLeaseThatCannotBeRenewed(t *testing.T) {
	for name, refuse := range map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errors.New("no connection") },
		"no answer": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				var ended ending
				stop := b.run(b.sender(Config{Handlers: doing(ended.do)}))
				id := b.enqueue(effect("a"))[0]
				wait(time.Second)
				b.store.Hook(memdb.Hook{Before: func(ctx context.Context, call memdb.Call) error {
					if call.Operation == "Renew" {
						return refuse(ctx)
					}
					return nil
				}})
				ends := b.row(id).LeasedUntil
				wait(28500 * time.Millisecond)
				if _, cause := ended.get(); cause != nil {
					b.Errorf("ended early with %v", cause)
				}
				wait(time.Second)
				if at, cause := ended.get(); cause != outbox.ErrLeaseLost || !at.Before(ends) {
					b.Errorf("ended by %v %v before the lease", cause, ends.Sub(at))
				}
				if err := stop(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// The lease is another's: the renewal says so, and what the handler returns is neither a failure nor recorded.
// Shows: S4.6
func TestLostLeaseIsNoFailure(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var lost, settled atomic.Int32
		b.observe(&outbox.Observer{
			LeaseLost: func(context.Context, outbox.Message) { lost.Add(1) },
			Settled:   func(context.Context, outbox.Message, outbox.Outcome, outbox.Result) { settled.Add(1) },
		})
		var ended ending
		began := time.Now()
		s := b.sender(Config{Name: "pod-0", Handlers: doing(ended.do)})
		stop := b.run(s)
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		if n, err := b.box.ReleaseWorker(b.Context(), outbox.AllTenants, "pod-0", outbox.By{Actor: "op", Reason: "gone"}); n != 1 || err != nil {
			b.Fatal(n, err)
		}
		b.pause(outbox.PauseLeasing)
		before := b.row(id)
		wait(10 * time.Second)
		if at, cause := ended.get(); cause != outbox.ErrLeaseLost || at.Sub(began) > 11*time.Second {
			b.Errorf("ended by %v after %v", cause, at.Sub(began))
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
		if after := b.row(id); after.Attempt != before.Attempt || after.LastError != "" || lost.Load() != 1 || settled.Load() != 0 {
			b.Errorf("the row became %+v; %d lost, %d settled", after, lost.Load(), settled.Load())
		}
	})
}

// Shows: S4.8
func TestCancelEndsTheHandler(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		stop := b.run(b.sender(Config{Handlers: doing(ended.do)}))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		if _, err := b.box.Cancel(b.Context(), outbox.AllTenants, []int64{id}, outbox.By{Actor: "op", Reason: "wrong"}); err != nil {
			b.Fatal(err)
		}
		wait(10 * time.Second)
		if _, cause := ended.get(); cause != outbox.ErrCancelled || b.outcomes()[id] != "cancelled" || b.called("SettleRetry") > 0 {
			b.Errorf("ended by %v, is %v after %v", cause, b.outcomes(), b.took())
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// Shows: S4.26
func TestPauseEndsTheHandlerAndKeepsTheAttempt(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		stop := b.run(b.sender(Config{Handlers: doing(ended.do)}))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		b.pause(outbox.PauseCancel)
		wait(time.Minute)
		_, cause := ended.get()
		if row := b.row(id); cause != outbox.ErrPaused || row.Attempt != 0 || row.Epoch != 1 || b.leased() != 0 {
			b.Errorf("ended by %v, left %+v", cause, row)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

func TestLongestHold(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		began := time.Now()
		stop := b.run(b.sender(Config{Handlers: doing(ended.do), LongestHold: 2 * time.Minute}))
		b.enqueue(effect("a"))
		wait(2 * time.Minute)
		if at, cause := ended.get(); cause != outbox.ErrLeaseLost || at.Sub(began) < time.Minute {
			b.Errorf("ended by %v after %v", cause, at.Sub(began))
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

func TestLeaseOfAKind(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		hang := func(ctx context.Context, _ outbox.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}
		stop := b.run(b.sender(Config{Handlers: Handlers{"charge": {Do: hang}, "report": {Do: hang, Lease: 10 * time.Minute}}}))
		charge := b.enqueue(effect("a"))[0]
		report := b.enqueue(effect("b", func(e *outbox.Effect) { e.Kind = "report" }))[0]
		for range 5 {
			wait(7 * time.Second)
			if left := time.Until(b.row(charge).LeasedUntil); left < 20*time.Second || left > 30*time.Second {
				b.Errorf("%v left of the lease of 30 s", left)
			}
			if left := time.Until(b.row(report).LeasedUntil); left < 9*time.Minute || left > 10*time.Minute {
				b.Errorf("%v left of the lease of 10 m", left)
			}
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// A delivery after the end of its lease is recorded where the policy accepts that and nobody has leased the message since.
// Shows: S3.18
func TestAcceptLate(t *testing.T) {
	inBubble(t, outbox.Policy{AcceptLate: true}, func(b *bench) {
		s := b.sender(Config{Slots: 1, Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(40 * time.Second) // ignores its context
			return nil
		})})
		id := b.enqueue(effect("a"))[0]
		b.failing("Renew", db.ErrRetry)
		if counts, err := s.RunOnce(b.Context()); err != nil || counts.Delivered != 1 || b.outcomes()[id] != "delivered" {
			b.Errorf("counted %+v, %v", counts, err)
		}
	})
}

// A renewal that was slow is refused since the lease is over, though nobody took the message. That is no reason not to record a delivery.
func TestAcceptLateAfterARefusedRenewal(t *testing.T) {
	for name, test := range map[string]struct {
		accept, cancel bool
		want           Counts
	}{
		"accepted":  {true, false, Counts{Leased: 1, Delivered: 1}},
		"refused":   {false, false, Counts{Leased: 1, Lost: 1}},
		"cancelled": {true, true, Counts{Leased: 1, Lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{AcceptLate: test.accept}, func(b *bench) {
				id := b.enqueue(effect("a"))[0]
				began, refused := time.Now(), 0
				b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
					if call.Operation != "Renew" {
						return b.before(b.Context(), call)
					}
					if time.Since(began) < 21*time.Second {
						return db.ErrRetry
					}
					time.Sleep(30*time.Second - time.Since(began))
					refused++
					return nil
				}})
				var cause error
				ctx, cancel := context.WithCancel(b.Context())
				s := b.sender(Config{Slots: 1, Handlers: doing(func(ctx context.Context, _ outbox.Message) error {
					if test.cancel {
						if _, err := b.box.Cancel(b.Context(), outbox.AllTenants, []int64{id}, outbox.By{Actor: "op", Reason: "wrong"}); err != nil {
							b.Error(err)
						}
					}
					time.Sleep(40 * time.Second) // ignores its context
					cause = context.Cause(ctx)
					cancel()
					return nil
				})})
				counts, err := s.RunOnce(ctx)
				if err != nil || counts != test.want || cause != outbox.ErrLeaseLost || refused != 1 {
					b.Errorf("counted %+v after %d refusals and %v, %v", counts, refused, cause, err)
				}
				if settles := b.called("SettleDelivered"); settles != test.want.Delivered {
					b.Errorf("%d settles", settles)
				}
			})
		})
	}
}
