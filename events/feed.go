package events

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// FeedConfig sets up a Feed. Zero fields take their defaults; negative ones are refused.
type FeedConfig struct {
	// Poll is how often the feed looks for new events while somebody follows it, with one query for all. Default 500 ms, between 10 ms and
	// 1 h. It looks at once, though not again within 10 ms, when this process commits effects through the log's box.
	Poll time.Duration
	// Recent is how many of the latest events are kept in memory, once for all followers; who falls further behind reads from the database.
	// Default 1,000, at most 100,000. They are at most 16 MiB, payloads, metadata and names together.
	Recent int
}

const (
	minPoll     = 10 * time.Millisecond
	maxPoll     = time.Hour
	maxRecent   = 100_000
	recentBytes = 16 << 20
	failedPause = time.Second
	// What one follower holds at a time, however slow it is: so many events out of memory, and the one that brings them to so many bytes is the last.
	followEvents = 256
	followBytes  = 256 << 10
)

// A Feed lets any number of followers share one reader of the end of the stream. Its methods may be called from several goroutines at once.
type Feed struct {
	log    *Log
	config FeedConfig

	mu        sync.Mutex
	followers int
	joined    chan struct{} // closed when the first follower comes
	changed   chan struct{} // closed when recent changes
	recent    []Event       // of every tenant: those after from, up to to
	bytes     int
	from, to  Cursor
	known     bool // from and to are set
}

// NewFeed makes a feed over a log, reporting every problem of the FeedConfig at once. It sends no statement and starts no goroutine: Run does
// its work.
func NewFeed(l *Log, config FeedConfig) (*Feed, error) {
	var found refusal.Problems
	if l == nil {
		found.Add("log", "is nil")
	}
	if config.Poll == 0 {
		config.Poll = 500 * time.Millisecond
	}
	if config.Recent == 0 {
		config.Recent = 1_000
	}
	found.Lasting("Poll", config.Poll, minPoll, maxPoll)
	found.Between("Recent", config.Recent, 1, maxRecent)
	if err := found.Err(); err != nil {
		return nil, failed("new feed", err)
	}
	return &Feed{log: l, config: config, joined: make(chan struct{}), changed: make(chan struct{})}, nil
}

// Log is what the feed was made over.
func (f *Feed) Log() *Log { return f.log }

// Run reads the end of the stream until ctx ends, and then returns nil. While nobody follows it sends no query. A read that fails is logged
// and tried again a second later; followers that have caught up do not notice.
func (f *Feed) Run(ctx context.Context) error {
	woken, stop := f.log.box.Woken()
	defer stop()
	for f.wanted(ctx) {
		more, err := f.advance(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			f.log.box.Logger().WarnContext(ctx, "cannot read the stream; trying again", "error", err)
			pause(ctx, failedPause, nil)
		case !more:
			pause(ctx, minPoll, nil) // a busy process commits more often
			pause(ctx, f.config.Poll-minPoll, woken)
		}
	}
	return nil
}

// pause waits, at most until ctx is over or somebody wakes.
func pause(ctx context.Context, wait time.Duration, woken <-chan struct{}) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C:
	}
}

// wanted waits for a follower; false once ctx is over.
func (f *Feed) wanted(ctx context.Context) bool {
	for ctx.Err() == nil {
		f.mu.Lock()
		followers, joined := f.followers, f.joined
		f.mu.Unlock()
		if followers > 0 {
			return true
		}
		f.forget() // what nobody reads would only grow old
		select {
		case <-ctx.Done():
		case <-joined:
		}
	}
	return false
}

// advance takes in what follows the recent events and says whether there may be more.
func (f *Feed) advance(ctx context.Context) (more bool, err error) {
	f.mu.Lock()
	known, to := f.known, f.to
	f.mu.Unlock()
	if !known {
		end, err := f.log.End(ctx)
		if err != nil {
			return false, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.known, f.from, f.to, f.recent, f.bytes = true, end, end, nil, 0
		f.announce()
		return false, nil
	}
	page, err := f.log.Read(ctx, to, maxBatch, Filter{Scope: outbox.AllTenants})
	if errors.Is(err, ErrCursorUnknown) || errors.Is(err, ErrCursorExpired) {
		f.forget() // the stream goes on elsewhere, which the followers are to find out
	}
	if err != nil || page.Next == to {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.to != to { // another Run was faster
		return true, nil
	}
	f.recent, f.to = append(f.recent, page.Events...), page.Next
	payload := 0
	for _, e := range page.Events {
		payload += len(e.Payload)
		f.bytes += e.size()
	}
	drop := 0
	for drop < len(f.recent) && (len(f.recent)-drop > f.config.Recent || f.bytes > recentBytes) {
		f.bytes -= f.recent[drop].size()
		f.from = f.recent[drop].cursor
		drop++
	}
	f.recent = slices.Delete(f.recent, 0, drop)
	f.announce()
	return len(page.Events) == maxBatch || payload >= pageBytes, nil
}

// forget drops the recent events, so that followers read from the database until a new end is known.
func (f *Feed) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.recent, f.bytes = false, nil, 0
	f.announce()
}

func (f *Feed) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// after gives the next recent events after a place. ok is false where they do not go on from exactly there: only the database knows the standing
// of such a place. changed is closed once there may be more.
func (f *Feed) after(place Cursor) (events []Event, changed <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known || place.incarnation != f.from.incarnation {
		return nil, f.changed, false
	}
	at, _ := slices.BinarySearchFunc(f.recent, place, func(e Event, place Cursor) int {
		if e.cursor.compare(place) <= 0 {
			return -1
		}
		return 1
	})
	before := f.from
	if at > 0 {
		before = f.recent[at-1].cursor
	}
	if place != before {
		return nil, f.changed, false
	}
	// A copy: the feed moves what it keeps, and who is slow must not hold all of it.
	return slices.Clone(f.recent[at:min(at+followEvents, len(f.recent))]), f.changed, true
}

// next reads on after a place, from memory where it can. Where the page's Next is the place, changed is closed once there may be more.
func (f *Feed) next(ctx context.Context, place Cursor, filter Filter) (Page, <-chan struct{}, error) {
	recent, changed, ok := f.after(place)
	if !ok {
		page, err := f.log.read(ctx, place, maxBatch, followBytes, filter)
		for i, size := 0, 0; i < len(page.Events)-1; i++ { // the statement counts payloads alone
			if size += page.Events[i].size(); size >= followBytes {
				page.Events, page.Next = slices.Clone(page.Events[:i+1]), page.Events[i].cursor
			}
		}
		return page, changed, err
	}
	page, size := Page{Next: place}, 0
	for _, e := range recent {
		if size >= followBytes {
			break
		}
		page.Next = e.cursor
		if filter.lets(e) {
			page.Events = append(page.Events, e)
			size += e.size()
		}
	}
	return page, changed, nil
}

func (f *Feed) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers++; f.followers == 1 {
		close(f.joined)
		f.joined = make(chan struct{})
	}
}

func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers--
}

// Follow calls do for each event after the cursor, past and to come, in the order of the stream, each once; it blocks until ctx ends or do
// fails, and returns that. It replays from the database until it has caught up with the feed, whose Run must be running somewhere in this process. do is
// given a cursor with each event (Event.Cursor); one that is slow delays nobody but itself, and memory does not grow for it. A read
// that fails for the database ends it too, with a retryable error: follow again from the last cursor. ErrCursorUnknown, ErrCursorExpired.
func (f *Feed) Follow(ctx context.Context, after Cursor, filter Filter, do func(Event) error) error {
	return f.FollowPages(ctx, after, filter, func(page Page) error {
		for _, e := range page.Events {
			if err := do(e); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

// FollowPages is Follow by pages, of at most 1,000 events and 256 KiB (payloads, metadata and names) before the last. The first comes at once, be it empty: the cursor
// is good then. Later ones are empty when only events followed that the filter left out; Next goes on after those too.
func (f *Feed) FollowPages(ctx context.Context, after Cursor, filter Filter, do func(Page) error) error {
	var found refusal.Problems
	filter.check(&found)
	if err := found.Refused(ctx); err != nil {
		return failed("follow", err)
	}
	f.join()
	defer f.leave()
	for first := true; ; first = false {
		page, changed, err := f.next(ctx, after, filter)
		if err != nil {
			return err
		}
		more := page.Next != after
		after = page.Next
		if more || first {
			if err := do(page); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// lets says whether an event of the feed passes the filter, as the statement judges those of a page.
func (f Filter) lets(e Event) bool {
	return f.Scope.Includes(e.Tenant) && (len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) &&
		(len(f.Streams) == 0 || slices.Contains(f.Streams, e.Stream))
}
