package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

var everyone = Filter{Scope: outbox.AllTenants}

// A feedBench is a feed over a store in memory, in a bubble of synctest, which also fails when a goroutine is left.
type feedBench struct {
	*testing.T
	store   *memdb.Store
	box     *outbox.Box
	log     *Log
	feed    *Feed
	down    atomic.Bool  // reads of the stream fail
	queries atomic.Int64 // reads of the stream
	ends    atomic.Int64 // those of its end
	n       int          // events appended
}

var errDown = errors.New("the database is down")

func onFeed(t *testing.T, config FeedConfig, test func(*feedBench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &feedBench{T: t, store: memdb.New(memdb.Config{})}
		b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation != "ReadEvents" && call.Operation != "ReadEnd" {
				return nil
			}
			b.queries.Add(1)
			if call.Operation == "ReadEnd" {
				b.ends.Add(1)
			}
			if b.down.Load() {
				return errDown
			}
			return nil
		}})
		var err error
		if b.box, err = outbox.New(b.store, outbox.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		if b.log, err = New(b.box, Config{MaxPayload: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		if b.feed, err = NewFeed(b.log, config); err != nil {
			t.Fatal(err)
		}
		test(b)
	})
}

// run runs the feed until the function it gives is called.
func (b *feedBench) run() (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- b.feed.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("Run ended with %v", err)
		}
	}
}

// fill appends events of the tenant "", each in a transaction of its own, called by their number.
func (b *feedBench) fill(count int) {
	for range count {
		b.n++
		b.append(Event{ID: fmt.Sprint(b.n), Type: "t"})
	}
}

func (b *feedBench) append(given ...Event) {
	err := b.store.Transact(b.Context(), func(tx db.Tx) error {
		_, err := b.log.Append(b.Context(), tx, given...)
		return err
	})
	if err != nil {
		b.Error(err)
	}
}

// purge removes everything, as retention with force does.
func (b *feedBench) purge() {
	time.Sleep(time.Millisecond)
	if _, err := b.store.PurgeEvents(b.Context(), db.PurgeEventsParams{MaxRows: 1_000_000, Force: true}); err != nil {
		b.Error(err)
	}
}

// A tail is a follower that keeps what it saw.
type tail struct {
	ids  []string     // to be read after its end
	seen atomic.Int64 // how many they are
	stop context.CancelFunc
	done chan error
}

// follow starts a follower; do, if set, is called with each event before it is kept.
func (b *feedBench) follow(after Cursor, filter Filter, do func(Event) error) *tail {
	f := &tail{done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(b.Context())
	f.stop = cancel
	go func() {
		f.done <- b.feed.Follow(ctx, after, filter, func(e Event) error {
			if do != nil {
				if err := do(e); err != nil {
					return err
				}
			}
			f.ids = append(f.ids, e.ID)
			f.seen.Add(1)
			return nil
		})
	}()
	return f
}

// end is what Follow returned once it was told to stop.
func (f *tail) end() error {
	f.stop()
	return <-f.done
}

func (b *feedBench) end() Cursor {
	end, err := b.log.End(b.Context())
	if err != nil {
		b.Error(err)
	}
	return end
}

// expect stops the follower, which saw the events of these numbers, each once and in order.
func (b *feedBench) expect(f *tail, from, to int) {
	b.Helper()
	if err := f.end(); !errors.Is(err, context.Canceled) {
		b.Errorf("the follower ended with %v", err)
	}
	var want []string
	for n := from; n <= to; n++ {
		want = append(want, fmt.Sprint(n))
	}
	if !slices.Equal(f.ids, want) {
		b.Errorf("saw %d events %.200q, want %d to %d", len(f.ids), f.ids, from, to)
	}
}
