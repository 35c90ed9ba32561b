package sender

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A handler that is done within the drain is settled, though the context of Run is over.
func TestStopWaitsForHandlers(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(func(ctx context.Context, _ outbox.Message) error {
			time.Sleep(8 * time.Second)
			return ctx.Err()
		})}))
		ids := b.enqueue(many(16)...)
		wait(time.Second)
		late := b.enqueue(effect("late"))[0]
		began := time.Now()
		if err := stop(); err != nil {
			b.Error(err)
		}
		if took := time.Since(began); took < 6*time.Second || took > 8*time.Second {
			b.Errorf("stopped after %v", took)
		}
		if got := b.outcomes(); len(got) != len(ids) || b.leased() != 0 || b.row(late).Attempt != 0 {
			b.Errorf("settled %d, left %d leases", len(got), b.leased())
		}
	})
}

// A handler that is not done is told to stop, and its message is given back with its attempt.
func TestStopInterruptsHandlers(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		stop := b.run(b.sender(Config{Handlers: doing(ended.do)}))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			b.Error(err)
		}
		at, cause := ended.get()
		if took := at.Sub(began); cause != outbox.ErrStopping || took != 10*time.Second {
			b.Errorf("ended by %v after %v", cause, took)
		}
		if row := b.row(id); row.Attempt != 0 || b.leased() != 0 || row.LastError != "" {
			b.Errorf("left %+v", row)
		}
	})
}

// An outcome that says more than "interrupted" is recorded.
func TestStopRecordsWhatHandlersKnow(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			<-ctx.Done()
			switch m.Key {
			case "done":
				return nil
			case "unknown":
				return outbox.Unknown(ctx.Err())
			default:
				return outbox.Permanent(ctx.Err())
			}
		})}))
		ids := b.enqueue(effect("done"), effect("unknown"), effect("permanent"))
		wait(time.Second)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if got := b.outcomes(); got[ids[0]] != "delivered" || got[ids[2]] != "dead" || b.row(ids[1]).State == 0 {
			b.Errorf("settled %v", got)
		}
	})
}

// Shows: S4.9
func TestStopReportsHandlersThatWouldNotEnd(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Drain: 2 * time.Second, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			if m.Key == "b" {
				return nil
			}
			time.Sleep(20 * time.Second)
			panic("late")
		})}))
		ids := b.enqueue(effect("a"), effect("b"), effect("c"))
		wait(time.Second)
		began := time.Now()
		err := stop()
		if took := time.Since(began); took > 2250*time.Millisecond {
			b.Errorf("stopped after %v", took)
		}
		var still *StillRunningError
		if !errors.As(err, &still) || !slices.Equal(still.IDs, []int64{ids[0], ids[2]}) {
			b.Errorf("got %v, want the ids %d and %d", err, ids[0], ids[2])
		}
		b.took()
		wait(20 * time.Second) // the late handlers end
		if calls := b.took(); len(calls) > 0 {
			b.Errorf("after the stop: %v", calls)
		}
		if b.row(ids[0]).Attempt != 1 || b.leased() != 2 {
			b.Error("gave a message back although its handler was running")
		}
	})
}

// What a lease brings when the stop has begun is given back.
func TestStopDuringALease(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.store.Hook(memdb.Hook{After: func(ctx context.Context, call memdb.Call, err error) error {
			if call.Operation == "LeaseDue" {
				time.Sleep(time.Second)
			}
			return err
		}})
		id := b.enqueue(effect("a"))[0]
		stop := b.run(b.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error { panic("performed") })}))
		wait(500 * time.Millisecond)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if row := b.row(id); row.Attempt != 0 || row.Epoch != 1 || b.leased() != 0 {
			b.Errorf("left %+v", row)
		}
	})
}

// A message that could not be given back at once is given back at the next try.
func TestReleaseIsRepeated(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		stop := b.run(b.sender(Config{Handlers: doing(ended.do)}))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		b.pause(outbox.PauseCancel)
		b.failing("Release", errDown)
		wait(12 * time.Second)
		b.failing("Release", nil)
		wait(10 * time.Second)
		if row := b.row(id); row.Attempt != 0 || b.leased() != 0 {
			b.Errorf("left %+v", row)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// A database that does not answer cannot hold up a stop, and the error says that leases are left.
func TestStopWithoutADatabase(t *testing.T) {
	for name, refuse := range map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errors.New("no connection") },
		"no answer": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				stop := b.run(b.sender(Config{Drain: 3 * time.Second, Handlers: doing(succeed)}))
				wait(time.Second)
				b.enqueue(effect("a"))
				b.store.Hook(memdb.Hook{Before: func(ctx context.Context, call memdb.Call) error {
					if call.Operation == "LeaseDue" || call.Operation == "DueLanes" {
						return nil
					}
					return refuse(ctx)
				}})
				wait(time.Second)
				began := time.Now()
				err := stop()
				if took := time.Since(began); took > 3250*time.Millisecond {
					b.Errorf("stopped after %v", took)
				}
				if !errors.Is(err, ErrLeasesLeft) || len(b.log.lines("settle was not answered")) != 1 {
					b.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestStopOfRunOnce(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		ids := b.enqueue(many(40)...)
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
		defer cancel()
		counts, err := b.sender(Config{Slots: 4, Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(2 * time.Second)
			return nil
		})}).RunOnce(ctx)
		if err != nil || counts.Delivered != 12 || len(b.outcomes()) != 12 || b.leased() != 0 {
			b.Errorf("of %d counted %+v, %v", len(ids), counts, err)
		}
	})
}

// A call that the stop ends is no failure of the database.
func TestStopEndsTheLeaseOfASuccessor(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.store.Hook(memdb.Hook{Before: func(ctx context.Context, call memdb.Call) error {
			if call.Operation == "LeaseSuccessors" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		b.enqueue(many(1, func(e *outbox.Effect) { e.OrderKey = "wallet 7" })...)
		stop := b.run(b.sender(Config{Drain: time.Second, Handlers: doing(succeed)}))
		wait(time.Second)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if lines := b.log.lines("level=ERROR"); len(b.outcomes()) != 1 || len(lines) > 0 {
			b.Errorf("settled %v, logged %v", b.outcomes(), lines)
		}
	})
}

// graceful is a handler that needs five seconds to end.
func graceful(e *ending) Config {
	const grace = 5 * time.Second
	return Config{Grace: grace, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
		defer time.Sleep(grace)
		return e.do(ctx, m)
	})}
}

func TestGraceAtAStop(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		stop := b.run(b.sender(graceful(&ended)))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			b.Error(err)
		}
		if at, cause := ended.get(); cause != outbox.ErrStopping || at.Sub(began) != 10*time.Second || time.Since(began) != 15*time.Second {
			b.Errorf("ended by %v after %v, stopped after %v", cause, at.Sub(began), time.Since(began))
		}
		if row := b.row(id); row.Attempt != 0 || b.leased() != 0 {
			b.Errorf("left %+v", row)
		}
	})
}

// The context of a handler that needs time to end is over that much before the lease.
func TestGraceIsWithinTheLease(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		b.failing("Renew", errors.New("no connection"))
		stop := b.run(b.sender(graceful(&ended)))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		until := b.row(id).LeasedUntil
		wait(26 * time.Second)
		if at, cause := ended.get(); cause != outbox.ErrLeaseLost || until.Sub(at) < 5*time.Second || until.Sub(at) > 6*time.Second {
			b.Errorf("ended by %v, %v before the lease", cause, until.Sub(at))
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}
