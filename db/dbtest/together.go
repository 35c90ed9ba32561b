package dbtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var togetherTests = []test{
	{name: "leases of two handles never grant one message twice", run: leasesApart},
	{name: "ordered leases of two handles run one at a time", run: orderedApart},
	{name: "of many replays one wins", run: replaysOneWinner},
	{name: "of many settles one wins", run: settlesOneWinner},
	{name: "purge beside replay leaves no orphan", run: purgeBesideReplay},
	{name: "settle beside cancel has one outcome", run: settleBesideCancel},
}

// together runs work n times at once, on both handles in turn, and waits for all.
func (f *fixture) together(n int, work func(i int, store db.Store)) {
	var all sync.WaitGroup
	for i := range n {
		store := f.Store
		if i%2 == 1 {
			store = f.Second
		}
		all.Go(func() { work(i, store) })
	}
	all.Wait()
}

// runOn is run for a goroutine, which may not stop the test.
func runOn[P, R any](f *fixture, operation func(context.Context, P) ([]R, error), arg P) []R {
	rows, err := operation(f.Context(), arg)
	if err != nil {
		f.Errorf("%T: %v", arg, err)
	}
	return rows
}

// A tally counts messages by id.
type tally struct {
	sync.Mutex
	counts map[int64]int
}

func (t *tally) add(ids ...int64) {
	t.Lock()
	defer t.Unlock()
	if t.counts == nil {
		t.counts = map[int64]int{}
	}
	for _, id := range ids {
		t.counts[id]++
	}
}

func (t *tally) size() int {
	t.Lock()
	defer t.Unlock()
	return len(t.counts)
}

// once checks that n messages came, each once.
func (t *tally) once(f *fixture, what string, n int) {
	f.Helper()
	same(f, what, len(t.counts), n)
	for id, count := range t.counts {
		if count != 1 {
			f.Errorf("%s: message %d %d times", what, id, count)
		}
	}
}

// Shows: S2.3 I2
func leasesApart(f *fixture) {
	f.enqueue(some(200)...)
	var leased tally
	f.together(8, func(_ int, store db.Store) {
		for {
			p := f.leasing()
			p.Quota, p.MaxRows = 7, 7
			ids := granted(runOn(f, store.LeaseDue, p))
			leased.add(ids...)
			if len(ids) == 0 {
				return
			}
		}
	})
	for rest := f.take(f.leasing()); len(rest.ids) > 0; rest = f.take(f.leasing()) { // skipped when they were locked
		leased.add(rest.ids...)
	}
	leased.once(f, "granted", 200)
}

func orderedApart(f *fixture) {
	const n = 40
	f.enqueue(slices.Concat(ordered("a", n), ordered("b", n))...)
	var running [2]atomic.Int32
	var settled tally
	f.together(6, func(_ int, store db.Store) {
		for turns := 0; turns < 1000*n && settled.size() < 2*n && !f.Failed(); turns++ {
			p := f.leasing()
			for _, row := range ofFate(runOn(f, store.LeaseDue, p), db.FateGranted) {
				key := &running[row.OrderKey[0]-'a']
				if !key.CompareAndSwap(0, 1) {
					f.Errorf("two of key %s at once", row.OrderKey)
				}
				h := hold{[]int64{row.ID}, [][]byte{p.Token}}
				runOn(f, store.Renew, h.renewed(leaseTime)) // so that it takes a while
				key.Store(0)
				settled.add(runOn(f, store.SettleDelivered, h.delivered())...)
			}
		}
	})
	settled.once(f, "settled", 2*n)
}

func replaysOneWinner(f *fixture) {
	ids := f.bury(some(20)...)
	var won tally
	f.together(6, func(_ int, store db.Store) { won.add(runOn(f, store.ReplayDead, replaying(ids...))...) })
	won.once(f, "replayed", len(ids))
	same(f, "audited", len(f.audits("replay")), len(ids))
}

// Shows: S1.28
func settlesOneWinner(f *fixture) {
	h := f.hold(some(50)...)
	var won tally
	f.together(6, func(i int, store db.Store) {
		switch i % 3 {
		case 0:
			won.add(runOn(f, store.SettleDelivered, h.delivered())...)
		case 1:
			won.add(runOn(f, store.SettleDead, h.dead("moot"))...)
		default:
			won.add(runOn(f, store.Release, h.released())...)
		}
	})
	won.once(f, "settled", len(h.ids))
}

// A purge that took its ids from the message table instead of from the settlements it deleted would leave what a replay brought back
// without its envelope; the audit of the tables sees it.
func purgeBesideReplay(f *fixture) {
	for range 5 {
		ids := f.bury(some(20)...)
		var purged, replayed tally
		f.together(4, func(i int, store db.Store) {
			if i < 2 {
				for from := 0; from < len(ids); from += 4 {
					replayed.add(runOn(f, store.ReplayDead, replaying(ids[from:from+4]...))...)
				}
				return
			}
			for range 5 {
				purged.add(f.purgeUndeliveredOn(store, "dead", 5, -time.Minute)...)
			}
		})
		for id := range purged.counts {
			replayed.add(id)
		}
		replayed.add(f.purgeUndelivered("dead", 100, -time.Minute)...) // skipped when they were locked
		replayed.once(f, "purged or replayed", len(ids))
		f.dropAll()
	}
}

// dropAll empties the zero lane.
func (f *fixture) dropAll() {
	f.Helper()
	h := f.take(f.leasing())
	sameIDs(f, "dropped", run(f, f.Store.SettleDropped, h.dropped()), h.ids...)
}

func settleBesideCancel(f *fixture) {
	h := f.hold(some(40)...)
	var ended tally
	f.together(4, func(i int, store db.Store) {
		for from := 0; from < len(h.ids); from += 8 {
			part := hold{h.ids[from : from+8], h.tokens[from : from+8]}
			if i%2 == 0 {
				ended.add(runOn(f, store.SettleDelivered, part.delivered())...)
			} else {
				ended.add(runOn(f, store.CancelOpen, db.CancelOpenParams{Ids: part.ids, AllTenants: true, Actor: "ann", Reason: "race"})...)
			}
		}
	})
	ended.once(f, "ended", len(h.ids))
}
