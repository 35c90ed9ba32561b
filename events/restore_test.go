package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// restored opens rigs, by both drivers, on a database that a dump of another was restored into.
func restored(t *testing.T, dsn string) []*rig {
	t.Helper()
	into := pgtest.Restored(t, dsn)
	return []*rig{pgxRig(t, into), pqRig(t, into)}
}

// dumped is a database with three events, e-1 to e-3, a named reader after e-2, and the cursors after each. Its server is far ahead of the one
// that it is restored on.
func dumped(t *testing.T) (r *rig, cursors []events.Cursor) {
	t.Helper()
	r = openPgx(t)
	r.exec("UPDATE outbox.incarnation SET base = 1000000000000, written_by = pg_current_xact_id()::xid::text::bigint")
	l := r.log(events.Config{})
	r.append(l, events.Event{ID: "e-1", Type: "a"}, events.Event{ID: "e-2", Type: "a"})
	r.append(l, events.Event{ID: "e-3", Type: "a"})
	for _, e := range r.await(l, 3) {
		cursors = append(cursors, e.Cursor())
	}
	err := r.store.Transact(r.Context(), func(tx db.Tx) error { return l.SaveReader(r.Context(), tx, "billing", events.Cursor{}, cursors[1]) })
	if err != nil {
		t.Fatal(err)
	}
	return r, cursors
}

// await reads all, once so many events are there to be read.
func (r *rig) await(l *events.Log, n int) []events.Event {
	r.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		page, err := l.Read(r.Context(), events.Cursor{}, 1000, events.Filter{})
		if err != nil {
			r.Fatal(err)
		}
		if len(page.Events) >= n {
			return page.Events
		}
		if time.Now().After(deadline) {
			r.Fatalf("%d events of %d can be read", len(page.Events), n)
		}
	}
}

// A cursor of the original is told that the stream is another, whoever looks first, and so is a saved reader; what was restored is all there, in
// its order.
//
// Shows: S4.19
func TestRestoredReads(t *testing.T) {
	t.Parallel()
	original, cursors := dumped(t)
	for _, r := range restored(t, original.dsn) {
		l := r.log(events.Config{})
		for _, name := range []string{"billing", "new"} { // a reader that stands there already, and one that would begin there
			from := map[string]events.Cursor{"billing": cursors[1]}[name]
			err := r.store.Transact(r.Context(), func(tx db.Tx) error { return l.SaveReader(r.Context(), tx, name, from, cursors[2]) })
			if !errors.Is(err, events.ErrCursorUnknown) {
				t.Errorf("%s saves a place of the original: %v", name, err)
			}
		}
		for i, cursor := range cursors {
			if page, err := l.Read(r.Context(), cursor, 10, events.Filter{}); !errors.Is(err, events.ErrCursorUnknown) {
				t.Errorf("after e-%d: %+v, %v", i+1, page, err)
			}
		}
		saved, err := l.Reader(r.Context(), "billing")
		if err != nil || saved != cursors[1] {
			t.Errorf("the reader stands at %v, %v", saved, err)
		}
		if got := idsOf(r.await(l, 3)); !slices.Equal(got, []string{"e-1", "e-2", "e-3"}) {
			t.Errorf("restored %v", got)
		}
	}
	if page, err := original.log(events.Config{}).Read(t.Context(), cursors[1], 10, events.Filter{}); err != nil || len(page.Events) != 1 {
		t.Errorf("the original goes on with %+v, %v", page, err)
	}
}

// Appending works at once, from several processes that adopt the stream at the same time: they make it one stream, in which what is new comes
// after all that was restored.
//
// Shows: S2.1 S4.19
func TestRestoredAppends(t *testing.T) {
	t.Parallel()
	original, _ := dumped(t)
	rigs := restored(t, original.dsn)
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		r := rigs[i%len(rigs)]
		l := r.log(events.Config{})
		group.Go(func() {
			errs[i] = r.store.Transact(t.Context(), func(tx db.Tx) error {
				_, err := l.Append(t.Context(), tx, events.Event{ID: fmt.Sprint("new-", i), Type: "a"}, events.Event{ID: fmt.Sprint("too-", i), Type: "a"})
				return err
			})
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var streams [2][]events.Event
	for i, r := range rigs {
		streams[i] = r.await(r.log(events.Config{}), 3+2*len(errs))
	}
	if got := idsOf(streams[0]); !slices.Equal(got[:3], []string{"e-1", "e-2", "e-3"}) || len(got) != 3+2*len(errs) {
		t.Errorf("the stream is %v", got)
	}
	if !slices.EqualFunc(streams[0], streams[1], func(a, b events.Event) bool { return a.ID == b.ID && a.Cursor() == b.Cursor() }) {
		t.Errorf("one sees %v, the other %v", idsOf(streams[0]), idsOf(streams[1]))
	}
	page, err := rigs[1].log(events.Config{}).Read(t.Context(), streams[0][2].Cursor(), 1000, events.Filter{})
	if err != nil || !slices.Equal(idsOf(page.Events), idsOf(streams[0][3:])) {
		t.Errorf("after e-3 come %v, %v", idsOf(page.Events), err)
	}
}

// A process that adopts the stream at its start, as a bus does, appends with the caller's connection alone.
func TestRestoredAdopts(t *testing.T) {
	t.Parallel()
	original, _ := dumped(t)
	for _, way := range []string{"log", "bus"} {
		r := restored(t, original.dsn)[0]
		pool, err := pgxpool.New(context.WithoutCancel(t.Context()), r.dsn+"&pool_max_conns=1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		narrow, err := pgxdb.New(pool, pgxdb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		alone := newRig(t, narrow)
		appending := func(l *events.Log) error {
			return narrow.Transact(t.Context(), func(tx db.Tx) error {
				_, err := l.Append(t.Context(), tx, events.Event{ID: "new", Type: "a"})
				return err
			})
		}
		if err := appending(alone.log(events.Config{})); !errors.Is(err, db.ErrRetry) {
			t.Errorf("without: %v", err)
		}
		if way == "log" {
			if err := alone.log(events.Config{}).Adopt(t.Context()); err != nil {
				t.Error(err)
			}
		} else {
			ctx, stop := context.WithCancel(t.Context())
			bus, err := events.NewBus(r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}}), "shop", events.BusConfig{})
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan error, 1)
			go func() { ran <- bus.Run(ctx) }()
			r.awaitAdopted()
			stop()
			if err := <-ran; err != nil {
				t.Error(err)
			}
		}
		if err := appending(alone.log(events.Config{})); err != nil {
			t.Errorf("after %s: %v", way, err)
		}
		if err := alone.log(events.Config{}).Adopt(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	}
}

// awaitAdopted waits until somebody has adopted the stream.
func (r *rig) awaitAdopted() {
	r.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		rows, err := r.store.ReadEnd(r.Context())
		switch {
		case err != nil:
			r.Fatal(err)
		case rows[0].Standing == db.StandingGood:
			return
		case time.Now().After(deadline):
			r.Fatal("nobody adopts the stream")
		}
	}
}

func idsOf(given []events.Event) (ids []string) {
	for _, e := range given {
		ids = append(ids, e.ID)
	}
	return ids
}
