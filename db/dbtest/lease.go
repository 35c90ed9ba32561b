package dbtest

import (
	"math"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var leaseTests = []test{
	{name: "grants what is due, whole", run: grantsWhole},
	{name: "grants nothing that is deferred or parked", run: grantsDueOnly},
	{name: "grants nothing twice", run: grantsOnce},
	{name: "stays with its lanes", run: grantsLaneOnly},
	{name: "stays in its scope", run: grantsScopeOnly},
	{name: "passes by paused lanes", run: grantsUnpaused},
	{name: "numbers its lanes", run: numbersLanes},
	{name: "takes a quota from each lane, the oldest first", run: grantsQuota},
	{name: "takes no more than its limit", run: grantsMaxRows},
	{name: "always closes with the instant", run: closesAlways},
	{name: "starts above the watermark", run: startsAboveWatermark},
	{name: "examines a bounded number of entries", run: examinesBounded},
	{name: "tells the bound of a lane of exactly so many entries", run: boundAtEnd},
	{name: "tells no bound of a lane that ended or filled its quota", run: boundOnlyWhenCut},
	{name: "grants a lease that is over anew, unsure", run: grantsLost},
	{name: "takes a lease in the far future for over", run: grantsFuture},
	{name: "fences the one before by a new token", run: fencesBefore},
}

// Shows: S1.3
func grantsWhole(f *fixture) {
	f.enqueue(effect{
		tenant: "acme", key: "order-1", order: "account-7", priority: 5, payload: []byte("body"), metadata: `{"a":"b"}`, position: 9, event: "evt",
	})
	d := f.dump()
	p := f.leasing(lane{tenant: "acme", priority: 5})
	p.Worker = 77
	rows, now := f.leaseDue(p)
	if len(rows) != 1 {
		f.Fatalf("got %+v", rows)
	}
	row, m, q := rows[0], d.Messages[0], f.queued(d.Messages[0].ID)
	if until := now.Add(leaseTime); row.LeasedUntil.Before(until) || row.LeasedUntil.After(until.Add(time.Minute)) {
		f.Errorf("leased until %v at %v", row.LeasedUntil, now)
	}
	sameInstant(f, "leased until", q.LeasedUntil, row.LeasedUntil)
	sameInstant(f, "due", row.DueAt, q.DueAt)
	sameInstant(f, "created", row.CreatedAt, m.CreatedAt)
	row.LeasedUntil, row.DueAt, row.CreatedAt = time.Time{}, time.Time{}, time.Time{}
	same(f, "granted", row, db.LeaseDueRow{
		LaneNo: 1, Fate: db.FateGranted, ID: m.ID, Tenant: "acme", Kind: "k", Key: "order-1", OrderKey: "account-7", Priority: 5,
		SourcePosition: 9, SourceEventID: "evt", Metadata: `{"a":"b"}`, Payload: []byte("body"), Attempt: 1, Epoch: 1,
	})
	want := d.Queue[0]
	want.Attempt, want.Epoch, want.Token, want.LeasedBy, want.LeasedUntil = 1, 1, p.Token, 77, q.LeasedUntil
	same(f, "queue row", q, want)
}

// Shows: S1.14
func grantsDueOnly(f *fixture) {
	f.park(some(1)...)
	deferred := f.enqueue(effect{delay: time.Hour})
	due := f.enqueue(some(2)...)
	sameIDs(f, "granted", f.take(f.leasing()).ids, due...)
	f.Age(f, time.Hour)
	f.cancel(due...)
	sameIDs(f, "granted an hour later", f.take(f.leasing()).ids, deferred...)
}

func grantsOnce(f *fixture) {
	f.hold(some(3)...)
	f.unchanged("a lease of leased messages", func() {
		if rows, _ := f.leaseDue(f.leasing()); len(rows) != 0 {
			f.Errorf("got %+v", rows)
		}
	})
}

// Shows: S1.12 S1.14
func grantsLaneOnly(f *fixture) {
	f.enqueue(effect{consumer: "other"}, effect{target: "other"}, effect{kind: "other"}, effect{tenant: "other"}, effect{priority: 1}, effect{priority: -1})
	f.unchanged("a lease of an empty lane", func() {
		sameIDs(f, "granted", f.take(f.leasing()).ids)
	})
}

// Shows: S4.21
func grantsScopeOnly(f *fixture) {
	ids := f.enqueue(effect{tenant: "a"}, effect{tenant: "b"}, effect{})
	p := f.leasing(lane{tenant: "a"}, lane{tenant: "b"}, lane{})
	p.AllTenants, p.Scope = false, []string{"b", "c"}
	sameIDs(f, "granted", f.take(p).ids, ids[1])
	p.Scope, p.Token = nil, f.token()
	sameIDs(f, "granted in no scope", f.take(p).ids)
	p.Scope = []string{""}
	sameIDs(f, "granted without a tenant", f.take(p).ids, ids[2])
}

func grantsUnpaused(f *fixture) {
	ids := f.enqueue(effect{}, effect{kind: "other"})
	f.pause("c", "*", "k", "*", 0)
	rows, _ := f.leaseDue(f.leasing(lane{}, lane{kind: "other"}))
	sameIDs(f, "granted", granted(rows), ids[1])
	f.resume("c", "*", "k", "*")
	sameIDs(f, "granted after it was lifted", f.take(f.leasing()).ids, ids[0])
}

func numbersLanes(f *fixture) {
	f.enqueue(effect{tenant: "b"}, effect{priority: 3}, effect{tenant: "b"})
	rows, _ := f.leaseDue(f.leasing(lane{tenant: "absent"}, lane{tenant: "b"}, lane{priority: 3}))
	var lanes []int32
	for _, row := range rows {
		lanes = append(lanes, row.LaneNo)
	}
	same(f, "lanes", lanes, []int32{2, 2, 3})
}

// Shows: S1.37
func grantsQuota(f *fixture) {
	f.enqueue(effect{due: time.Now().Add(time.Second)}) // due last although it has the lowest id
	first, other := f.enqueue(some(3)...), f.enqueue(slices.Repeat([]effect{{tenant: "a"}}, 3)...)
	f.Age(f, time.Minute)
	p := f.leasing(lane{tenant: "a"}, lane{})
	p.Quota = 2
	sameIDs(f, "granted", f.take(p).ids, first[0], first[1], other[0], other[1])
}

func grantsMaxRows(f *fixture) {
	f.enqueue(some(3)...)
	f.enqueue(slices.Repeat([]effect{{tenant: "a"}}, 3)...)
	p := f.leasing(lane{}, lane{tenant: "a"})
	p.MaxRows = 4
	rows, _ := f.leaseDue(p)
	same(f, "granted", len(granted(rows)), 4)
	p.Token = f.token()
	rows, _ = f.leaseDue(p)
	same(f, "granted then", len(granted(rows)), 2)
}

func closesAlways(f *fixture) {
	_, first := f.leaseDue(f.leasing())
	none := f.leasing()
	none.Kinds, none.Tenants, none.Priorities, none.AfterDues = []string{}, []string{}, []int16{}, []time.Time{}
	none.AfterIds, none.AttemptLimits, none.MaxAges = []int64{}, []int32{}, []int64{}
	_, second := f.leaseDue(none)
	if second.Before(first) || first.Before(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
		f.Errorf("closed at %v, then at %v", first, second)
	}
}

func startsAboveWatermark(f *fixture) {
	due := time.Date(2030, 1, 1, 0, 0, 0, 1000, time.UTC)
	ids := f.enqueue(effect{due: due.Add(-time.Microsecond)}, effect{due: due}, effect{due: due}, effect{due: due.Add(time.Microsecond)})
	aged := time.Until(due) + time.Hour
	aged = aged.Truncate(time.Microsecond)
	f.Age(f, aged)
	p := f.leasing()
	p.AfterDues[0], p.AfterIds[0] = due.Add(-aged), ids[1]
	sameIDs(f, "granted", f.take(p).ids, ids[2], ids[3])
	p.AfterDues[0], p.AfterIds[0], p.Token = due.Add(-aged), math.MaxInt64, f.token()
	sameIDs(f, "granted above it", f.take(p).ids)
	sameIDs(f, "granted from the front", f.take(f.leasing()).ids, ids[0], ids[1])
}

func examinesBounded(f *fixture) {
	f.hold(some(4)...)
	free := f.enqueue(some(3)...)
	p := f.leasing()
	p.Examine = 5
	rows, _ := f.leaseDue(p)
	sameIDs(f, "granted among the first five", granted(rows), free[0])
	bound := ofFate(rows, db.FateBound)[0]
	same(f, "bound", []int64{int64(bound.LaneNo), int64(bound.Fate), bound.ID}, []int64{1, db.FateBound, free[0]})
	sameInstant(f, "bound", bound.DueAt, f.queued(free[0]).DueAt)
	p.AfterDues[0], p.AfterIds[0], p.Token = bound.DueAt, bound.ID, f.token()
	rows, _ = f.leaseDue(p)
	sameIDs(f, "granted going on there", granted(rows), free[1], free[2])
	same(f, "bounds when the lane ended", withFate(rows, db.FateBound), nil)
}

func boundAtEnd(f *fixture) {
	h := f.hold(some(3)...)
	p := f.leasing()
	p.Examine = 3
	rows, _ := f.leaseDue(p)
	sameIDs(f, "bound", withFate(rows, db.FateBound), h.ids[2])
	p.Examine = 4
	rows, _ = f.leaseDue(p)
	same(f, "rows of a lane that ended", len(rows), 0)
}

func boundOnlyWhenCut(f *fixture) {
	f.hold(some(2)...)
	f.enqueue(some(3)...)
	for _, cut := range []struct{ examine, quota, maxRows int32 }{{100, 100, 100}, {4, 2, 100}, {4, 100, 2}} {
		p := f.leasing()
		p.Examine, p.Quota, p.MaxRows = cut.examine, cut.quota, cut.maxRows
		rows, _ := f.leaseDue(p)
		if bounds := withFate(rows, db.FateBound); bounds != nil {
			f.Errorf("%+v told the bound %d", cut, bounds)
		}
		run(f, f.Store.Release, hold{granted(rows), slices.Repeat([][]byte{p.Token}, len(granted(rows)))}.released())
	}
}

// Shows: S1.15 S3.15
func grantsLost(f *fixture) {
	id := f.hold(some(1)...).ids[0]
	f.Age(f, leaseTime-5*time.Second)
	sameIDs(f, "granted before its end", f.take(f.leasing()).ids)
	f.Age(f, 5*time.Second)
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "granted at its end", granted(rows), id)
	same(f, "attempt, epoch", []int64{int64(rows[0].Attempt), rows[0].Epoch}, []int64{2, 2})
	same(f, "unsure", []bool{rows[0].Unsure, f.queued(id).Unsure}, []bool{true, true})
}

func grantsFuture(f *fixture) {
	id := f.enqueue(effect{order: "o"})[0]
	p := f.leasing()
	p.Lease = db.LongestLease.Microseconds()
	sameIDs(f, "granted", f.take(p).ids, id)
	sameIDs(f, "granted beside the longest lease", f.take(f.leasing()).ids)
	f.Age(f, db.LongestLease)
	p.Lease, p.Token = (db.LongestLease + time.Minute).Microseconds(), f.token()
	sameIDs(f, "granted when it is over", f.take(p).ids, id)
	sameIDs(f, "granted beside one that no process can have taken", f.take(f.leasing()).ids, id)
}

func fencesBefore(f *fixture) {
	lost := f.hold(some(2)...)
	f.Age(f, leaseTime)
	now := f.take(f.leasing())
	f.unchanged("what the one before does", func() {
		sameIDs(f, "settled", run(f, f.Store.SettleDelivered, lost.delivered()))
		sameIDs(f, "released", run(f, f.Store.Release, lost.released()))
		same(f, "renewed", len(run(f, f.Store.Renew, lost.renewed(time.Minute))), 0)
	})
	sameIDs(f, "settled by the one after", run(f, f.Store.SettleDelivered, now.delivered()), lost.ids...)
}
