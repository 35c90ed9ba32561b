package sender

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

var errDown = errors.New("connection refused")

// While the database is down a sender makes less than two attempts a second, whatever it has to do, writes one record when that begins, one
// a minute and one when it is over, and is back within ten seconds. Handlers that were running are settled then, and no attempt is spent.
func TestC60DatabaseDown(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Lease: 10 * time.Minute, Drain: 10 * time.Second, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			if m.Key != "late" {
				time.Sleep(time.Minute)
			}
			return nil
		})}))
		ids := b.enqueue(many(10)...)
		wait(time.Second)
		b.took()
		b.failing("*", errDown)
		wait(3 * time.Second)
		if calls := b.took(); len(calls) > 6 {
			b.Errorf("%d attempts in the first three seconds: %v", len(calls), calls)
		}
		wait(2 * time.Minute)
		if calls := b.took(); len(calls) > 60 || len(calls) < 15 {
			b.Errorf("%d attempts in two minutes", len(calls))
		}
		if begun, reminded := b.log.lines("backing off"), b.log.lines("still fail"); len(begun) != 1 || len(reminded) < 1 || len(reminded) > 2 {
			b.Errorf("logged %v %v", begun, reminded)
		}
		b.failing("*", nil)
		wait(10 * time.Second)
		if over := b.log.lines("succeed again"); len(over) != 1 {
			b.Errorf("logged %v", over)
		}
		if got := b.outcomes(); len(got) != len(ids) {
			b.Errorf("settled %v", got)
		}
		for _, s := range b.store.Dump().Settlements {
			if s.Attempt != 1 {
				b.Errorf("message %d has %d attempts", s.MessageID, s.Attempt)
			}
		}
		late := b.enqueue(effect("late"))[0]
		wait(100 * time.Millisecond)
		if b.outcomes()[late] != "delivered" {
			b.Error("not at full speed")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// Whatever there is to do (renew, settle, give back, lease, touch), it is tried one call at a time.
func TestC60OneCallAtATime(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var mu sync.Mutex
		var at []time.Time
		down := false
		b.store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error {
			mu.Lock()
			defer mu.Unlock()
			if !down {
				return nil
			}
			at = append(at, time.Now())
			return errDown
		}})
		stop := b.run(b.sender(Config{Lease: 5 * time.Minute, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			if m.Key == "0" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Minute)
			return nil
		})}))
		b.enqueue(many(5)...)
		wait(time.Second)
		mu.Lock()
		down = true
		mu.Unlock()
		wait(4 * time.Minute)
		mu.Lock()
		down = false
		mu.Unlock()
		if err := stop(); err != nil {
			b.Error(err)
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < firstBackoff {
				b.Errorf("attempts %v and %v are %v apart", at[i-1], at[i], gap)
			}
		}
		if len(at) < 30 {
			b.Errorf("%d attempts in four minutes", len(at))
		}
	})
}

// A server that is read-only answers some calls. That is no recovery.
func TestC60ReadOnlyServer(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.failing("LeaseDue", errDown)
		b.enqueue(effect("a"))
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		wait(time.Minute)
		calls := b.took()
		if n := len(b.log.lines("level=")); n > 3 || len(calls) > 60 {
			b.Errorf("%d records and %d calls in a minute", n, len(calls))
		}
		b.failing("LeaseDue", nil)
		wait(10 * time.Second)
		if len(b.outcomes()) != 1 || len(b.log.lines("succeed again")) != 1 {
			b.Errorf("settled %v", b.outcomes())
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// An operation that fails for reasons of its own does not keep the others from being tried.
func TestOneOperationFails(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(effect("short"), effect("long"))
		stop := b.run(b.sender(Config{Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			if m.Key == "short" {
				return nil
			}
			<-ctx.Done()
			if context.Cause(ctx) != outbox.ErrStopping {
				b.Errorf("ended by %v", context.Cause(ctx))
			}
			return ctx.Err()
		})}))
		b.failing("SettleDelivered", errDown)
		wait(5 * time.Minute) // the long one is renewed although settles fail
		if n := b.called("Renew"); n < 20 {
			b.Errorf("%d renewals in five minutes", n)
		}
		b.failing("SettleDelivered", nil)
		wait(time.Minute)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if len(b.outcomes()) != 1 {
			b.Errorf("settled %v", b.outcomes())
		}
	})
}

// An operation that failed and has nothing left to do does not prolong the outage.
func TestOutageEndsWithItsWork(t *testing.T) {
	for operation, do := range map[string]func(context.Context, outbox.Message) error{
		"SettleDelivered": succeed,
		"Renew": func(ctx context.Context, _ outbox.Message) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(operation, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				b.enqueue(effect("a"))
				b.failing(operation, errDown)
				stop := b.run(b.sender(Config{Handlers: doing(do)}))
				wait(time.Second)
				b.pause(outbox.PauseLeasing)
				wait(time.Minute) // the lease is over
				if over := b.log.lines("succeed again"); len(over) != 1 {
					b.Errorf("logged %v", b.log.lines("level="))
				}
				if err := stop(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// A connection that keeps breaking does not fill the log.
func TestFlappingDatabase(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		for i := range 600 {
			b.failing("*", []error{errDown, nil}[i%2])
			wait(100 * time.Millisecond)
		}
		records := b.log.lines("level=")
		if n := len(records); n == 0 || n > 40 {
			b.Errorf("%d records in a minute", n)
		}
		for last := (time.Time{}); len(records) > 0; records = records[1:] {
			stamp, _, _ := strings.Cut(strings.TrimPrefix(records[0], "time="), " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			if err != nil || at.Sub(last) < reportEvery-time.Millisecond { // they are cut to it
				b.Errorf("%v after the last: %s, %v", at.Sub(last), records[0], err)
			}
			last = at
		}
		b.failing("*", nil)
		wait(10 * time.Second)
		if fails, ends := b.log.lines("calls fail"), b.log.lines("succeed again"); len(fails) != len(ends) {
			b.Errorf("told of %d outages and %d ends", len(fails), len(ends))
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

func TestRunOnceReturnsTheError(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(many(40)...)
		s := b.sender(Config{Slots: 4, Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(time.Second)
			b.failing("LeaseDue", errDown)
			return nil
		})})
		counts, err := s.RunOnce(b.Context())
		if !errors.Is(err, errDown) || counts.Delivered != 4 || b.leased() != 0 {
			b.Errorf("counted %+v, %v", counts, err)
		}
		b.failing("*", errDown)
		b.took()
		if _, err := s.RunOnce(b.Context()); !errors.Is(err, errDown) || !slices.Equal(b.took(), []string{"ReadVersion"}) {
			b.Errorf("without a database: %v", err)
		}
	})
}
