package property_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// A streamReading is what a reader does and has seen.
type streamReading struct {
	run  *streamRun
	plan streamReader
	name string

	steps     atomic.Int64
	mu        sync.Mutex
	seen      []events.Event
	forgotten []span
}

// A span is events that were read after so many others, and forgotten in a restart.
type span struct {
	after  int
	events []events.Event
}

// A step is what a reader is to do next.
type streamStep struct {
	limit, saves int
	restart      bool
}

// step gives the next one. Every other goes on, so that a reader gets somewhere.
func (r *streamReading) step() streamStep {
	n := int(r.steps.Add(1))
	at := n % len(r.plan.limits)
	return streamStep{limit: r.plan.limits[at], saves: r.plan.saves[at], restart: r.plan.restarts[at] && n%2 == 0}
}

func (r *streamReading) read(ctx context.Context) error {
	return []func(context.Context) error{keepsText: r.byText, keepsReader: r.byName, keepsFollow: r.byFollowing}[r.plan.keeps](ctx)
}

// page reads at most limit events, and waits a little when there is nothing.
func (r *streamReading) page(ctx context.Context, after events.Cursor, limit int) (events.Page, error) {
	page, err := r.run.log.Read(ctx, after, limit, r.filter())
	if err == nil && len(page.Events) > limit {
		err = fmt.Errorf("%d events in a page of %d", len(page.Events), limit)
	}
	if err == nil && page.Next == after {
		time.Sleep(streamPoll)
	}
	return page, err
}

// filter is the plan's, which lets the end pass, too.
func (r *streamReading) filter() events.Filter {
	f := r.plan.filter
	if len(f.Types) > 0 {
		f.Types = append(slices.Clone(f.Types), endType)
	}
	return f
}

// ended says whether the events close the stream for this reader.
func (r *streamReading) ended(seen []events.Event) bool {
	last := ""
	if r.plan.filter.Scope.Includes("acme") {
		last = "acme"
	}
	return len(seen) > 0 && seen[len(seen)-1].Type == endType && seen[len(seen)-1].Tenant == last
}

// byText saves, before a restart, the text of a cursor within the page.
func (r *streamReading) byText(ctx context.Context) error {
	var after events.Cursor
	for !r.ended(r.seen) {
		step := r.step()
		page, err := r.page(ctx, after, step.limit)
		if err != nil {
			return err
		}
		after = page.Next
		if step.restart && len(page.Events) > 0 {
			cut := 1 + step.saves*(len(page.Events)-1)/100
			r.forgotten = append(r.forgotten, span{len(r.seen) + cut, page.Events[cut:]})
			page.Events = page.Events[:cut]
			if after, err = events.ParseCursor(page.Events[cut-1].Cursor().String()); err != nil {
				return err
			}
		}
		r.seen = append(r.seen, page.Events...)
	}
	return nil
}

// byName has seen what it saves in one transaction, and goes on from there; two goroutines may do so under one name.
func (r *streamReading) byName(ctx context.Context) error {
	from, err := r.run.log.Reader(ctx, r.name)
	for err == nil && !r.over() {
		step := r.step()
		var page events.Page
		if page, err = r.page(ctx, from, step.limit); err != nil || page.Next == from {
			if r.plan.pair && err == nil { // the other one may have moved on
				from, err = r.run.log.Reader(ctx, r.name)
			}
			continue
		}
		from, err = r.save(ctx, step, from, page)
		if step.restart || errors.Is(err, events.ErrReaderMoved) {
			from, err = r.run.log.Reader(ctx, r.name)
		}
	}
	return err
}

func (r *streamReading) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended(r.seen)
}

// save gives the place where the reader is then.
func (r *streamReading) save(ctx context.Context, step streamStep, from events.Cursor, page events.Page) (events.Cursor, error) {
	defer r.run.alone()()
	tx := r.run.stage.begin(r.run.tb)
	if err := r.run.log.SaveReader(ctx, tx.Tx, r.name, from, page.Next); err != nil {
		return from, errors.Join(err, tx.rollback())
	}
	r.mu.Lock() // who has it has the reader's row, too
	defer r.mu.Unlock()
	if step.restart && step.saves <= 30 {
		r.forgotten = append(r.forgotten, span{len(r.seen), page.Events})
		return from, tx.rollback()
	}
	if err := tx.commit(); err != nil {
		return from, err
	}
	r.seen = append(r.seen, page.Events...)
	return page.Next, nil
}

// byFollowing leaves a feed now and then, and comes back with the cursor of the last event.
func (r *streamReading) byFollowing(ctx context.Context) error {
	enough := errors.New("enough")
	var after events.Cursor
	for !r.ended(r.seen) {
		err := r.run.feed.Follow(ctx, after, r.filter(), func(e events.Event) error {
			r.seen = append(r.seen, e)
			if r.ended(r.seen) || r.step().restart {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			return err
		}
		if after, err = events.ParseCursor(r.seen[len(r.seen)-1].Cursor().String()); err != nil {
			return err
		}
	}
	return nil
}

// check compares what a last reader sees with the ledger, and what the others saw with that.
func (r *streamRun) check(ctx context.Context) error {
	all := &streamReading{run: r, plan: streamReader{
		filter: events.Filter{Scope: outbox.AllTenants}, limits: []int{1000}, saves: []int{0}, restarts: []bool{false},
	}}
	if err := all.byText(ctx); err != nil {
		return err
	}
	stream := all.seen
	if err := r.checkOrder(stream); err != nil {
		return err
	}
	for _, reading := range r.reads {
		want := slices.DeleteFunc(slices.Clone(stream), func(e events.Event) bool { return !passes(reading.filter(), e) })
		for _, s := range append(reading.forgotten, span{0, reading.seen}) {
			if s.after+len(s.events) > len(want) || !slices.EqualFunc(s.events, want[s.after:s.after+len(s.events)], sameEvent) {
				return fmt.Errorf("%s (%+v) saw after %d events %v, of the stream\n%v", reading.name, reading.plan, s.after, ids(s.events), ids(want))
			}
		}
		if len(reading.seen) != len(want) {
			return fmt.Errorf("%s (%+v) saw %d events %v, of the stream\n%v", reading.name, reading.plan, len(reading.seen), ids(reading.seen), ids(want))
		}
	}
	return nil
}

// checkOrder holds the stream against the ledger.
func (r *streamRun) checkOrder(stream []events.Event) error {
	left := maps.Clone(r.facts)
	next := map[int64]int{}    // the place of a transaction's next event
	latest, by := int64(0), "" // when the latest of the transactions so far began
	for _, e := range stream {
		f, ok := left[e.ID]
		delete(left, e.ID)
		switch {
		case !ok:
			return fmt.Errorf("%q is there twice, or was not committed, in %v", e.ID, ids(stream))
		case !whole(e, f.Event):
			return fmt.Errorf("%+v was committed as %+v", e, f.Event)
		case next[f.tx] != f.nth:
			return fmt.Errorf("%q is number %d of its transaction, not %d, in %v", e.ID, f.nth, next[f.tx], ids(stream))
		case f.ended < latest:
			return fmt.Errorf("%q comes after %q, whose transaction began after that of the former was over, in %v", e.ID, by, ids(stream))
		}
		next[f.tx]++
		if f.began > latest {
			latest, by = f.began, e.ID
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%v are not in the stream\n%v", slices.Collect(maps.Keys(left)), ids(stream))
	}
	return nil
}

// passes is what a filter means.
func passes(f events.Filter, e events.Event) bool {
	return f.Scope.Includes(e.Tenant) && (len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) &&
		(len(f.Streams) == 0 || slices.Contains(f.Streams, e.Stream))
}

// whole says whether an event was read as it was given.
func whole(read, given events.Event) bool {
	return read.Position == given.Position && read.Tenant == given.Tenant && read.Stream == given.Stream && read.Type == given.Type &&
		bytes.Equal(read.Payload, given.Payload) && maps.Equal(read.Metadata, given.Metadata) && !read.RecordedAt.IsZero()
}

// sameEvent says whether two readers saw the same event at the same place.
func sameEvent(a, b events.Event) bool {
	return a.ID == b.ID && a.Cursor() == b.Cursor() && whole(a, b) && a.RecordedAt.Equal(b.RecordedAt)
}

func ids(seen []events.Event) (ids []string) {
	for _, e := range seen {
		ids = append(ids, e.ID)
	}
	return ids
}
