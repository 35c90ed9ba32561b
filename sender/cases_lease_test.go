package sender

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// stalled is a store whose renewals do not come through, as those of a process that is cut off or stopped.
type stalled struct{ db.Store }

func (stalled) Renew(context.Context, db.RenewParams) ([]db.RenewRow, error) {
	return nil, errors.New("stalled")
}

func stall(store db.Store) db.Store { return stalled{store} }

// A handler that takes three leases keeps its message while the lease can be renewed.
func TestC03RenewedLeaseIsKept(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		var performed calls
		effects := prefixed("long", 3)
		config := Config{Lease: 5 * time.Second, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			performed.add(m)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(16 * time.Second):
				return nil
			}
		})}
		first, second := r.process(use, setup{}), r.process(use, setup{})
		stopFirst, stopSecond := first.run(first.sender(config)), second.run(second.sender(config))
		first.enqueue(effects...)
		r.eventually("deliveries", func() bool { return r.outcomes()["delivered"] == len(effects) })
		if err := errors.Join(stopFirst(), stopSecond()); err != nil {
			r.Error(err)
		}
		performed.once(r, effects)
		if lost := first.lost.Load() + second.lost.Load(); lost != 0 {
			r.Errorf("%d leases lost", lost)
		}
	})
}

// A handler whose lease cannot be renewed is told before anybody takes its message over; whatever it returns then changes nothing and is not
// counted as a failure.
// Shows: S1.29
func TestC03LostLeaseIsToldAndHarmless(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		results := map[string]error{"success": nil, "failure": errors.New("cut off"), "permanent": outbox.Permanent(errors.New("no"))}
		type told struct {
			key   string
			at    time.Time
			cause error
		}
		ended, taken := make(chan told, len(results)), make(chan told, len(results))
		resume, finish := make(chan struct{}), make(chan struct{})
		first := r.process(use, setup{wrap: stall})
		// The handlers occupy all slots, so the messages cannot come back to their first sender.
		config := Config{Slots: len(results), Lease: 2 * time.Second, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			<-ctx.Done()
			ended <- told{m.Key, time.Now(), context.Cause(ctx)}
			<-resume
			return results[m.Key]
		})}
		stopFirst := first.run(first.sender(config))
		var ids []int64
		for key := range results {
			ids = append(ids, first.enqueue(effect(key))...)
		}
		r.eventually("the first leases", func() bool { return r.leases() == len(results) })

		second := r.process(use, setup{})
		stopSecond := second.run(second.sender(Config{Lease: time.Hour, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			taken <- told{key: m.Key, at: time.Now()}
			<-finish
			return nil
		})}))
		ends := map[string]told{}
		for range results {
			end := receive(r, "the end of a handler's context", ended)
			ends[end.key] = end
		}
		for range results {
			by := receive(r, "the second handler", taken)
			if one := ends[by.key]; one.cause != outbox.ErrLeaseLost || !one.at.Before(by.at) {
				r.Errorf("told %v, %v before the takeover", one.cause, by.at.Sub(one.at))
			}
		}
		var before []string
		for _, id := range ids {
			before = append(before, r.version(id))
		}
		close(resume)
		r.eventually("the settles of the first sender", func() bool { return first.settledLate() == len(ids) })
		for i, id := range ids {
			if after := r.version(id); after != before[i] {
				r.Errorf("the version of row %d became %s, was %s", id, after, before[i])
			}
		}
		if retries, burials := first.counted(); retries+burials != 0 || first.settledLate() != len(results) {
			r.Errorf("counted %d lost, %d retries, %d burials", first.settledLate(), retries, burials)
		}
		close(finish)
		r.eventually("the deliveries", func() bool { return r.outcomes()["delivered"] == len(results) })
		if err := errors.Join(stopFirst(), stopSecond()); err != nil {
			r.Error(err)
		}
	})
}

// A process that restarts under the name of another neither takes its live leases for its own nor lets it write after a takeover.
func TestC04NameIsNoFence(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		started, resume := make(chan struct{}, 1), make(chan struct{})
		first := r.process(use, setup{wrap: stall})
		stopFirst := first.run(first.sender(Config{Name: "pod-0", Slots: 1, Lease: 2 * time.Second, Handlers: doing(func(context.Context, outbox.Message) error {
			started <- struct{}{}
			<-resume
			return nil
		})}))
		id := first.enqueue(effect("a"))[0]
		receive(r, "the first handler", started)
		held, version := r.row(id), r.version(id)

		finish, taken := make(chan struct{}), make(chan outbox.Message, 1)
		second := r.process(use, setup{})
		stopSecond := second.run(second.sender(Config{Name: "pod-0", Lease: time.Hour, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			taken <- m
			<-finish
			return nil
		})}))
		r.eventually("the second worker", func() bool { return len(r.beside.Dump(r).Workers) == 2 })
		if again := r.version(id); time.Now().Before(held.LeasedUntil) && again != version {
			r.Errorf("a worker of the same name touched the row: %s, was %s", again, version)
		}
		took := receive(r, "the takeover", taken)
		if row := r.row(id); string(row.Token) == string(held.Token) || row.LeasedBy == held.LeasedBy || took.Epoch != 2 {
			r.Errorf("taken over with %+v", took)
		}
		version = r.version(id)
		close(resume)
		r.eventually("the first settle", func() bool { return first.settledLate() == 1 })
		if again := r.version(id); again != version {
			r.Errorf("the first process changed the row: %s, was %s", again, version)
		}
		close(finish)
		r.eventually("the delivery", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := errors.Join(stopFirst(), stopSecond()); err != nil {
			r.Error(err)
		}
	})
}

// Two senders that have learnt to lease ahead meet handlers that are slow: every message is performed exactly once.
func TestC06TailOfABatch(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		var performed calls
		quick, slow := prefixed("quick", 60), prefixed("slow", 8)
		config := Config{Slots: 1, Batch: 50, Lease: 6 * time.Second, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			performed.add(m)
			if m.Key[0] == 's' {
				time.Sleep(time.Second)
			}
			return ctx.Err()
		})}
		first, second := r.process(use, setup{}), r.process(use, setup{})
		first.enqueue(append(quick, slow...)...)
		stopFirst, stopSecond := first.run(first.sender(config)), second.run(second.sender(config))
		r.eventually("deliveries", func() bool { return r.outcomes()["delivered"] == len(quick)+len(slow) })
		if err := errors.Join(stopFirst(), stopSecond()); err != nil {
			r.Error(err)
		}
		performed.once(r, append(quick, slow...))
		for _, s := range r.beside.Dump(r).Settlements {
			if s.Attempt != 1 {
				r.Errorf("message %d spent %d attempts", s.MessageID, s.Attempt)
			}
		}
	})
}
