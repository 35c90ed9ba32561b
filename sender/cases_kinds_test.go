package sender

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// The least settings that are accepted do not make a sender spin, and a lease of nothing sends nothing.
func TestC23LeastSettingsAreQuiet(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		sent, called := &statements{}, &attempts{}
		p := r.process(use, setup{tracer: sent, wrap: func(store db.Store) db.Store {
			called.Store = store
			return called
		}})
		// Through pgx a query is a transaction of four statements. Those on a file are not traced; there the sender's calls are counted.
		queries := func() int {
			if n, _ := sent.count(); n > 0 {
				return n / 4
			}
			return int(called.n.Load())
		}
		stop := p.run(p.sender(Config{Slots: 1, Batch: 1, Lease: time.Second, Poll: minPoll, Drain: 1, Handlers: doing(succeed)}))
		r.eventually("the first poll", func() bool { return queries() > 2 })
		before := queries()
		const watched = 2 * time.Second
		<-time.After(watched)
		if polls := queries() - before; polls >= 20*int(watched/time.Second) || polls == 0 {
			r.Errorf("%d queries in %v", polls, watched)
		}
		if err := stop(); err != nil {
			r.Error(err)
		}
		p.enqueue(effect("a"))
		all := func() int {
			n, _ := sent.count()
			return n + int(called.n.Load())
		}
		before = all()
		for _, limit := range []int{0, -1} {
			got, err := p.box.Lease(r.Context(), p.consumer, outbox.LeaseRequest{Kinds: []string{"charge"}, Limit: limit, For: time.Minute})
			if after := all(); len(got) != 0 || err != nil || after != before {
				r.Errorf("limit %d: leased %d, %v, with %d statements and calls", limit, len(got), err, after-before)
			}
		}
	})
}

// A sender leaves kinds alone that it does not know; with none it sends nothing; and an operator sees what nobody handles, with its age.
// Shows: S3.17
func TestC54UnknownKinds(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		var performed calls
		note := func(_ context.Context, m outbox.Message) error {
			performed.add(m)
			return nil
		}
		kind := func(name string) func(*outbox.Effect) { return func(e *outbox.Effect) { e.Kind = name } }
		known, fresh, typo := prefixed("a", 20, kind("a")), prefixed("b", 100, kind("b")), prefixed("typo", 3, kind("aa"))

		sent := &statements{}
		none := r.process(use, setup{tracer: sent})
		before, _ := sent.count()
		stopNone := none.run(none.sender(Config{}))
		old := r.process(use, setup{})
		stopOld := old.run(old.sender(Config{Handlers: Handlers{"a": {Do: note}}}))
		ids := old.enqueue(fresh...)
		old.enqueue(typo...)
		versions := r.versions(ids)
		old.enqueue(known...)
		r.eventually("the known kind", func() bool { return r.outcomes()["delivered"] == len(known) })
		if !slices.Equal(r.versions(ids), versions) {
			r.Error("a sender touched messages of a kind that it does not handle")
		}

		updated := r.process(use, setup{})
		stopUpdated := updated.run(updated.sender(Config{Handlers: Handlers{"a": {Do: note}, "b": {Do: note}}}))
		r.eventually("the new kind", func() bool { return r.outcomes()["delivered"] == len(known)+len(fresh) })
		if err := errors.Join(stopNone(), stopOld(), stopUpdated()); err != nil {
			r.Error(err)
		}
		performed.once(r, append(known, fresh...))
		if after, _ := sent.count(); after != before {
			r.Errorf("a sender without handlers sent %d statements", after-before)
		}
		r.beside.Age(r, time.Hour)
		stats, err := old.box.Stats(r.Context(), outbox.AllTenants)
		if err != nil || len(stats.Lanes) != 1 || stats.Lanes[0].Kind != "aa" || stats.Lanes[0].Due != 3 || stats.Lanes[0].Age < time.Hour {
			r.Errorf("an operator sees %+v, %v", stats.Lanes, err)
		}
	})
}
