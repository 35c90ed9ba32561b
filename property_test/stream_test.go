package property_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// Writers with pauses and rollbacks append side by side while readers page, stop, forget and go on from what they saved: every reader sees each
// committed event once, whole, in the one order of the stream.
//
// Shows: S1.34 S1.40 S2.1 S4.19 I34 I35
func TestStream(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		plan := drawStream(c.T, 3, rapid.IntRange(0, 40).Draw(c.T, "events"))
		if err := newStreamRun(c.tb, c.stage, plan).run(); err != nil {
			c.Fatal(err)
		}
	})
}

// The same at size: 500 events by 8 writers, or 10,000 under FENCEPOST_FULL=1. A file has one writer at a time.
//
// Shows: S1.34 S1.40 S2.1 S4.19 I34 I35
func TestStreamAtSize(t *testing.T) {
	t.Parallel()
	size := 500
	if os.Getenv("FENCEPOST_FULL") != "" {
		size = 10_000
	}
	for _, d := range drivers[1:] {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			seed := int(time.Now().UnixNano())
			plan := rapid.Custom(func(t *rapid.T) streamPlan { return drawStream(t, 8, size) }).Example(seed)
			d.open(t)(nil, func(_ *rapid.T, s *stage) { // no check of rapid's: what would be left to shrink differs from run to run
				run := newStreamRun(t, s, plan)
				if err := run.run(); err != nil {
					t.Fatalf("plan of seed %d: %v", seed, err)
				}
				t.Logf("%d events committed", len(run.facts))
			})
		})
	}
}

// A streamRun carries out a plan, and keeps a ledger of what was committed, and when.
type streamRun struct {
	tb    testing.TB
	stage *stage
	plan  streamPlan
	log   *events.Log
	feed  *events.Feed

	clock atomic.Int64 // counts what the ledger puts in order
	file  sync.Mutex   // held by who writes to a file
	mu    sync.Mutex
	facts map[string]fact // the committed events, by id
	reads []*streamReading
}

// A fact is an event with what is known of its transaction: it wrote nothing before began, and its commit had returned at ended.
type fact struct {
	events.Event
	tx           int64
	nth          int // of its transaction's
	began, ended int64
}

const (
	streamTimeout = 5 * time.Minute // a transaction of any test on the server holds the stream back
	streamPoll    = 2 * time.Millisecond
	endType       = "end" // of the last events, by which readers know that it is over
)

func newStreamRun(tb testing.TB, s *stage, plan streamPlan) *streamRun {
	tb.Helper()
	box, err := outbox.New(s.store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	log, err := events.New(box, events.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	feed, err := events.NewFeed(log, events.FeedConfig{Poll: 10 * time.Millisecond, Recent: 16}) // so few that followers fall behind
	if err != nil {
		tb.Fatal(err)
	}
	return &streamRun{tb: tb, stage: s, plan: plan, log: log, feed: feed, facts: map[string]fact{}}
}

func (r *streamRun) run() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.tb.Context()), streamTimeout) // the test's own is outside of the bubble
	defer cancel()
	feeding, stop := context.WithCancel(ctx)
	var fed sync.WaitGroup
	fed.Go(func() { r.feed.Run(feeding) })
	defer fed.Wait()
	defer stop()

	readers, writers := newCrew(cancel), newCrew(cancel)
	for i, plan := range r.plan.readers {
		reading := &streamReading{run: r, plan: plan, name: fmt.Sprint("reader ", i)}
		r.reads = append(r.reads, reading)
		readers.add(reading.name, func() error { return reading.read(ctx) })
		if plan.keeps == keepsReader && plan.pair {
			readers.add(reading.name+" too", func() error { return reading.read(ctx) })
		}
	}
	for i, txs := range r.plan.writers {
		writers.add(fmt.Sprint("writer ", i), func() error {
			for _, tx := range txs {
				if err := r.write(ctx, tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := writers.wait()
	if err == nil {
		err = r.write(ctx, streamTx{appends: []streamAppend{{events: endEvents()}}})
	}
	if err = errors.Join(err, readers.wait()); err != nil {
		return err
	}
	return r.check(ctx)
}

// endEvents end the stream for readers of any scope.
func endEvents() (ends []events.Event) {
	for _, tenant := range eventTenants {
		ends = append(ends, events.Event{ID: "end of " + tenant, Tenant: tenant, Type: endType})
	}
	return ends
}

// alone waits for the file, where one transaction writes at a time, and gives what leaves it.
func (r *streamRun) alone() func() {
	if !r.stage.oneFile {
		return func() {}
	}
	r.file.Lock()
	return r.file.Unlock
}

// write carries out a transaction and enters into the ledger what it committed.
func (r *streamRun) write(ctx context.Context, plan streamTx) error {
	time.Sleep(plan.before)
	defer r.alone()()
	tx := r.stage.begin(r.tb)
	kept, began, err := r.append(ctx, tx, plan)
	time.Sleep(plan.within)
	if err != nil || plan.undone {
		return errors.Join(err, tx.rollback())
	}
	if err := tx.commit(); err != nil {
		return err
	}
	ended := r.clock.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for nth, e := range kept {
		r.facts[e.ID] = fact{Event: e, tx: began, nth: nth, began: began, ended: ended}
	}
	return nil
}

// append makes a transaction's calls and gives the events that are not undone, and when it began to write.
func (r *streamRun) append(ctx context.Context, tx caller, plan streamTx) (kept []events.Event, began int64, err error) {
	exec := tx.exec
	if exec == nil { // in memory, where there are no savepoints
		exec = func(string, ...any) error { return nil }
	}
	began = r.clock.Add(1)
	if plan.early {
		if err := exec("INSERT INTO business VALUES (0)"); err != nil {
			return nil, 0, err
		}
	}
	for _, call := range plan.appends {
		if call.undone && tx.exec == nil {
			continue
		}
		if err := exec("SAVEPOINT here"); err != nil {
			return nil, 0, err
		}
		receipts, err := r.log.Append(ctx, tx.Tx, call.events...)
		if err != nil {
			return nil, 0, err
		}
		for i, receipt := range receipts {
			if receipt.Status != outbox.Recorded || i > 0 && receipt.Position <= receipts[i-1].Position {
				return nil, 0, fmt.Errorf("receipts %+v of events that are new", receipts)
			}
		}
		if call.undone {
			if err := exec("ROLLBACK TO SAVEPOINT here"); err != nil {
				return nil, 0, err
			}
			continue
		}
		for i, e := range call.events {
			e.Position = receipts[i].Position
			kept = append(kept, e)
		}
	}
	return kept, began, nil
}

// A crew is goroutines of which the first that fails ends all.
type crew struct {
	group  sync.WaitGroup
	cancel context.CancelFunc
	mu     sync.Mutex
	errs   []error
}

func newCrew(cancel context.CancelFunc) *crew { return &crew{cancel: cancel} }

func (c *crew) add(name string, work func() error) {
	c.group.Go(func() {
		if err := work(); err != nil {
			c.cancel()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.errs = append(c.errs, fmt.Errorf("%s: %w", name, err))
		}
	})
}

func (c *crew) wait() error {
	c.group.Wait()
	return errors.Join(c.errs...)
}
