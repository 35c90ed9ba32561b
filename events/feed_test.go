package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestFeedReadsOnceForAll(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		stop := b.run()
		time.Sleep(time.Hour)
		if n := b.queries.Load(); n != 0 {
			b.Errorf("%d queries while nobody follows", n)
		}
		b.fill(3)
		var followers []*tail
		for i := range 100 {
			after := Cursor{}
			if i%2 == 1 {
				after = b.end()
			}
			followers = append(followers, b.follow(after, everyone, nil))
		}
		time.Sleep(time.Minute)
		b.queries.Store(0)
		for range 10 {
			b.fill(2)
			time.Sleep(time.Second)
		}
		if n := b.queries.Load(); n < 19 || n > 21 {
			b.Errorf("%d queries in 10 s for 100 followers, want one in 500 ms", n)
		}
		for i, f := range followers {
			b.expect(f, 1+3*(i%2), 23)
		}
		time.Sleep(time.Second)
		b.queries.Store(0)
		time.Sleep(time.Hour)
		if n := b.queries.Load(); n != 0 {
			b.Errorf("%d queries after the last one left", n)
		}
		late := b.follow(b.end(), everyone, nil)
		synctest.Wait()
		b.fill(1)
		time.Sleep(time.Second)
		b.expect(late, 24, 24)
		stop()
	})
}

// Followers join in the middle of replays and of a stream that goes on, and transactions end in another order than they began.
// Shows: S4.19
func TestFollowOverlap(t *testing.T) {
	onFeed(t, FeedConfig{Poll: 50 * time.Millisecond, Recent: 50}, func(b *feedBench) {
		stop := b.run()
		b.fill(1100)
		var followers []*tail
		for i := range 20 {
			pace := time.Duration(i%4) * time.Millisecond
			followers = append(followers, b.follow(Cursor{}, everyone, func(Event) error {
				time.Sleep(pace)
				return nil
			}))
			time.Sleep(time.Duration(i) * time.Millisecond)
			older := b.store.Begin()
			b.n++
			if _, err := b.log.Append(b.Context(), older, Event{ID: fmt.Sprint(b.n), Type: "t"}); err != nil {
				b.Error(err)
			}
			b.fill(i % 7) // held back by the older one
			time.Sleep(time.Duration(i%3) * 7 * time.Millisecond)
			if err := older.Commit(); err != nil {
				b.Error(err)
			}
		}
		time.Sleep(10 * time.Second)
		for _, f := range followers {
			b.expect(f, 1, b.n)
		}
		stop()
	})
}

func TestSlowFollowerDelaysNobody(t *testing.T) {
	onFeed(t, FeedConfig{Recent: 10}, func(b *feedBench) {
		stop := b.run()
		slow := b.follow(b.end(), everyone, func(Event) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		fast := b.follow(b.end(), everyone, nil)
		synctest.Wait()
		for range 10 {
			b.fill(20)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := slow.seen.Load(); n > 100 {
			b.Errorf("the slow one has seen %d in 10 s", n)
		}
		b.expect(fast, 1, 200)
		time.Sleep(11 * time.Second)
		b.expect(slow, 1, 200)
		stop()
	})
}

// However slow, a follower holds no more than a page: of the stream in the database and of the recent events alike.
func TestFollowerHoldsLittle(t *testing.T) {
	onFeed(t, FeedConfig{Recent: 1_000}, func(b *feedBench) {
		stop := b.run()
		payload := make([]byte, 100<<10)
		large := func() {
			b.append(slices.Repeat([]Event{{Type: "t", Payload: payload}}, 10)...)
		}
		large()
		ctx, cancel := context.WithCancel(b.Context())
		var pages []int
		done := make(chan error, 1)
		go func() {
			done <- b.feed.FollowPages(ctx, Cursor{}, everyone, func(page Page) error {
				pages = append(pages, len(page.Events))
				return nil
			})
		}()
		time.Sleep(time.Second)
		large()
		time.Sleep(time.Second)
		many := make([]Event, 600)
		for i := range many {
			many[i].Type = "t"
		}
		b.append(many...)
		time.Sleep(time.Second)
		cancel()
		<-done
		if want := []int{3, 3, 3, 1, 3, 3, 3, 1, 256, 256, 88}; !slices.Equal(pages, want) {
			b.Errorf("pages of %v events, want %v", pages, want)
		}
		stop()
	})
}

// What counts is all that an event takes, not its payload alone: of the recent events and of a follower's page, whichever way it comes.
func TestFeedCountsMetadata(t *testing.T) {
	onFeed(t, FeedConfig{Recent: 100_000}, func(b *feedBench) {
		stop := b.run()
		wide := Event{Type: "t", Metadata: map[string]string{"m": strings.Repeat("x", 8_000)}}
		b.append(slices.Repeat([]Event{wide}, 40)...)
		ctx, cancel := context.WithCancel(b.Context())
		var pages []int
		done := make(chan error, 1)
		go func() {
			done <- b.feed.FollowPages(ctx, Cursor{}, everyone, func(page Page) error {
				pages = append(pages, len(page.Events))
				return nil
			})
		}()
		time.Sleep(time.Second)
		b.append(slices.Repeat([]Event{wide}, 40)...)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []int{33, 7, 33, 7}; !slices.Equal(pages, want) {
			b.Errorf("pages of %v events, want %v", pages, want)
		}
		for range 3 {
			b.append(slices.Repeat([]Event{wide}, 800)...)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := len(b.feed.recent); n < 2_000 || n*8_000 > recentBytes { // before the last follower goes, when they are forgotten
			b.Errorf("%d events of 8 kB are kept", n)
		}
		cancel()
		<-done
		stop()
	})
}

func TestFeedOutlivesAnOutage(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		stop := b.run()
		after := b.end()
		caughtUp := b.follow(after, everyone, nil)
		time.Sleep(time.Minute)
		b.down.Store(true)
		b.queries.Store(0)
		b.fill(5)
		for range 10_000 { // a busy process does not make it try more often
			b.box.Committed(1)
			time.Sleep(time.Millisecond)
		}
		if n := b.queries.Load(); n < 9 || n > 11 {
			b.Errorf("%d tries in 10 s, want one a second", n)
		}
		if err := <-b.follow(Cursor{}, everyone, nil).done; !errors.Is(err, errDown) {
			b.Errorf("a follower that must read from the database ended with %v", err)
		}
		b.down.Store(false)
		b.ends.Store(0)
		time.Sleep(1100 * time.Millisecond)
		if b.ends.Load() > 0 {
			b.Error("began anew at the end, which makes every follower read from the database")
		}
		b.expect(caughtUp, 1, 5)
		stop()
	})
}

func TestFeedLooksAtOnce(t *testing.T) {
	onFeed(t, FeedConfig{Poll: time.Hour}, func(b *feedBench) {
		stop := b.run()
		f := b.follow(b.end(), everyone, nil)
		time.Sleep(time.Minute)
		b.fill(1)
		b.box.Committed(1)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if n := f.seen.Load(); n != 1 {
			b.Errorf("saw %d events soon after the commit", n)
		}
		b.queries.Store(0)
		for range 10_000 {
			b.box.Committed(1)
			time.Sleep(100 * time.Microsecond)
		}
		if n := b.queries.Load(); n < 50 || n > 101 {
			b.Errorf("%d queries in a second of commits, want at most one in 10 ms", n)
		}
		b.expect(f, 1, 1)
		stop()
	})
}

// A place that the stream does not have is told, also while the feed knows a later or an earlier one.
func TestFollowUnknownCursors(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		stop := b.run()
		b.fill(5)
		f := b.follow(Cursor{}, everyone, nil)
		time.Sleep(time.Second)
		b.fill(5)
		time.Sleep(time.Second)
		for name, change := range map[string]func(*Cursor){
			"future":      func(c *Cursor) { c.transaction++; c.position++ },
			"transaction": func(c *Cursor) { c.transaction-- },
			"digest":      func(c *Cursor) { c.digest[0]++ },
			"incarnation": func(c *Cursor) { c.incarnation[0]++ },
		} {
			c := b.end()
			change(&c)
			other := b.follow(c, everyone, nil)
			synctest.Wait()
			if err := other.end(); !errors.Is(err, ErrCursorUnknown) {
				b.Errorf("another %s: %v", name, err)
			}
		}
		b.expect(f, 1, 10)
		stop()
	})
}

// Shows: S4.19
func TestFollowExpiredCursors(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		stop := b.run()
		start := b.end()
		b.fill(1100)
		slow := b.follow(Cursor{}, everyone, func(Event) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		})
		caughtUp := b.follow(b.end(), everyone, nil)
		time.Sleep(time.Second)
		b.purge()
		b.fill(1)
		if err := <-slow.done; !errors.Is(err, ErrCursorExpired) || len(slow.ids) != 1000 {
			b.Errorf("a slow follower saw %d and ended with %v", len(slow.ids), err)
		}
		if err := <-b.follow(start, everyone, nil).done; !errors.Is(err, ErrCursorExpired) {
			b.Errorf("from an expired cursor: %v", err)
		}
		b.down.Store(true) // so that the feed itself falls behind
		b.fill(1)
		b.purge()
		b.fill(1)
		b.down.Store(false)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		select {
		case err := <-caughtUp.done:
			if !errors.Is(err, ErrCursorExpired) || !slices.Equal(caughtUp.ids, []string{"1101"}) {
				b.Errorf("who had caught up saw %q and ended with %v", caughtUp.ids, err)
			}
		default:
			b.Error("who had caught up is not told")
			caughtUp.end()
		}
		anew := b.follow(Cursor{}, everyone, nil)
		time.Sleep(time.Minute)
		b.fill(1)
		time.Sleep(time.Second)
		b.expect(anew, 1103, 1104)
		stop()
	})
}

// The feed judges a filter as the statement does.
func TestFollowFilters(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		stop := b.run()
		filters := []Filter{
			{}, everyone, {Scope: outbox.Tenants("a")}, {Scope: outbox.Tenants("a", "b"), Types: []string{"t1"}},
			{Scope: outbox.AllTenants, Streams: []string{"s1"}}, {Scope: outbox.AllTenants, Streams: []string{""}, Types: []string{"t0", "t1"}},
		}
		var live []*tail
		for _, filter := range filters {
			live = append(live, b.follow(b.end(), filter, nil))
		}
		time.Sleep(time.Second)
		for i := range 90 {
			b.append(Event{ID: fmt.Sprint(i), Tenant: []string{"", "a", "b"}[i%3], Type: fmt.Sprint("t", i/3%3), Stream: []string{"", "s1"}[i/9%2]})
		}
		time.Sleep(time.Minute)
		for i, filter := range filters {
			page, err := b.log.Read(b.Context(), Cursor{}, 1000, filter)
			var want []string
			for _, e := range page.Events {
				want = append(want, e.ID)
			}
			live[i].end()
			if err != nil || len(want) == 0 || !slices.Equal(live[i].ids, want) {
				b.Errorf("%+v: saw %q, read %q, %v", filter, live[i].ids, want, err)
			}
		}
		stop()
	})
}

func TestFollowEnds(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		stop := b.run()
		own := errors.New("own")
		b.fill(3)
		if err := <-b.follow(Cursor{}, everyone, func(Event) error { return own }).done; err != own {
			b.Errorf("do failed, Follow returned %v", err)
		}
		stops := make(chan context.CancelFunc, 1)
		ending := b.follow(Cursor{}, everyone, func(Event) error {
			(<-stops)()
			return nil
		})
		stops <- ending.stop
		if err := <-ending.done; !errors.Is(err, context.Canceled) || len(ending.ids) != 1 {
			b.Errorf("saw %q after the end of the context, %v", ending.ids, err)
		}
		func() {
			defer func() { recover() }()
			b.feed.Follow(b.Context(), Cursor{}, everyone, func(Event) error { panic("do") })
		}()
		if b.feed.followers != 0 {
			b.Errorf("%d followers are left", b.feed.followers)
		}
		over, cancel := context.WithCancel(b.Context())
		cancel()
		b.queries.Store(0)
		if err := b.feed.Follow(over, Cursor{}, everyone, nil); !errors.Is(err, context.Canceled) {
			b.Errorf("with a context that is over: %v", err)
		}
		if err := b.feed.Follow(b.Context(), Cursor{}, Filter{Scope: outbox.Tenants()}, nil); !errors.Is(err, outbox.ErrInvalid) {
			b.Errorf("for no tenant: %v", err)
		}
		if n := b.queries.Load(); n != 0 {
			b.Errorf("%d queries for refused calls", n)
		}
		stop()
	})
}

// A feed may be run again, and two Runs at once give nothing twice.
func TestFeedRunsAgain(t *testing.T) {
	onFeed(t, FeedConfig{}, func(b *feedBench) {
		b.store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error {
			time.Sleep(time.Millisecond) // so that they read from the same place
			return nil
		}})
		f := b.follow(Cursor{}, everyone, nil)
		stopOne, stopOther := b.run(), b.run()
		for range 10 {
			b.fill(10)
			time.Sleep(time.Second)
		}
		stopOne()
		stopOther()
		b.fill(10)
		time.Sleep(time.Minute)
		if n := f.seen.Load(); n != 100 {
			b.Errorf("saw %d", n)
		}
		stop := b.run()
		time.Sleep(time.Second)
		b.expect(f, 1, 110)
		stop()
	})
}

func TestNewFeedRefuses(t *testing.T) {
	t.Parallel()
	_, err := NewFeed(nil, FeedConfig{Poll: time.Millisecond, Recent: -1})
	for _, field := range []string{"log", "Poll", "Recent"} {
		if !errors.Is(err, outbox.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
