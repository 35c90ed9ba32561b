package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var renewTests = []test{
	{name: "extends a lease", run: renewExtends},
	{name: "never shortens one", run: renewNeverShortens},
	{name: "brings one back within the longest after the clock stepped back", run: renewAfterStepBack},
	{name: "changes nothing of a lease that is not ours", run: renewGuards},
	{name: "extends the order lease alike", run: renewOrder},
	{name: "tells the strongest pause", run: renewPause},
}

func renewExtends(f *fixture) {
	h := f.hold(some(2)...)
	before := f.queued(h.ids[0])
	for _, row := range run(f, f.Store.Renew, h.renewed(10*time.Minute)) {
		q := f.queued(row.ID)
		sameInstant(f, "leased until", row.LeasedUntil, q.LeasedUntil)
		same(f, "pause", row.PauseMode, -1)
		if extended := q.LeasedUntil.Sub(before.LeasedUntil); extended < 9*time.Minute || extended > 11*time.Minute {
			f.Errorf("extended by %v", extended)
		}
	}
	after := f.queued(h.ids[0])
	after.LeasedUntil = before.LeasedUntil
	same(f, "the rest of the row", after, before)
}

func renewNeverShortens(f *fixture) {
	h := f.hold(effect{order: "o"})
	f.unchanged("a shorter lease", func() {
		row := one(f, f.Store.Renew, h.renewed(time.Second))
		sameInstant(f, "leased until", row.LeasedUntil, f.queued(h.ids[0]).LeasedUntil)
	})
}

func renewAfterStepBack(f *fixture) {
	h := f.hold(effect{order: "o"})
	f.Age(f, -3*time.Hour)
	row := one(f, f.Store.Renew, h.renewed(time.Second))
	sameInstant(f, "leased until", row.LeasedUntil, f.queued(h.ids[0]).LeasedUntil)
	sameInstant(f, "the order lease", row.LeasedUntil, f.dump().OrderLeases[0].LeasedUntil)
	rows, _ := f.leaseDue(f.leasing())
	for _, r := range rows {
		if r.Fate == db.FateGranted && r.ID == row.ID {
			f.Errorf("the renewed lease is taken for one that is over, as it ends at %v", row.LeasedUntil)
		}
	}
}

// Shows: S4.5
func renewGuards(f *fixture) {
	h := f.hold(some(3)...)
	run(f, f.Store.SettleDelivered, h.only(0).delivered())
	f.cancel(h.ids[1])
	f.unchanged("a renewal", func() {
		same(f, "renewed of settled ones", len(run(f, f.Store.Renew, hold{h.ids[:2], h.tokens[:2]}.renewed(time.Hour))), 0)
		for what, token := range map[string][]byte{"a foreign token": f.token(), "no token": {}, "nobody's token": db.FreeToken} {
			same(f, what, len(run(f, f.Store.Renew, h.only(2).with(token).renewed(time.Hour))), 0)
		}
		same(f, "renewed of an unknown one", len(run(f, f.Store.Renew, hold{[]int64{1 << 60}, h.tokens[:1]}.renewed(time.Hour))), 0)
	})
	f.Age(f, leaseTime)
	f.unchanged("a late renewal", func() {
		same(f, "renewed when over", len(run(f, f.Store.Renew, h.only(2).renewed(time.Hour))), 0)
	})
}

func renewOrder(f *fixture) {
	h := f.hold(effect{order: "o"})
	next := f.enqueue(effect{order: "o"})
	until := one(f, f.Store.Renew, h.renewed(10*time.Minute)).LeasedUntil
	sameInstant(f, "order lease until", f.dump().OrderLeases[0].LeasedUntil, until)
	f.Age(f, 5*time.Minute)
	sameIDs(f, "granted meanwhile", f.take(f.leasing()).ids)
	run(f, f.Store.SettleDelivered, h.delivered())
	sameIDs(f, "granted after", f.take(f.leasing()).ids, next...)
}

func renewPause(f *fixture) {
	f.enqueue(effect{tenant: "a"}, effect{tenant: "b"}, effect{})
	h := f.take(f.leasing(lane{tenant: "a"}, lane{tenant: "b"}, lane{}))
	f.pause("c", "t", "k", "a", 1)
	f.pause("c", "*", "*", "a", 0)
	f.pause("*", "t", "*", "b", 0)
	f.pause("*", "*", "elsewhere", "*", 1)
	modes := map[int64]int32{}
	for _, row := range run(f, f.Store.Renew, h.renewed(leaseTime)) {
		modes[row.ID] = row.PauseMode
	}
	same(f, "modes", modes, map[int64]int32{h.ids[0]: 1, h.ids[1]: 0, h.ids[2]: -1})
}
