package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var guardTests = []test{
	{name: "a foreign, an empty and nobody's token", run: guardToken},
	{name: "another consumer, target and scope", run: guardPlace},
	{name: "a lease that is over", run: guardOver},
	{name: "a lease that ended by a settle", run: guardEnded},
	{name: "a lease that ended by another's act", run: guardTaken},
	{name: "a message that nobody holds", run: guardFree},
}

// A guard is where a settle may act.
type guard struct {
	consumer, target string
	all              bool
	scope            []string
	late             bool
}

var anywhere = guard{consumer: "c", target: "t", all: true}

// settles is every way to settle.
var settles = []struct {
	name string
	do   func(f *fixture, h hold, g guard) []int64
}{
	{"SettleDelivered", func(f *fixture, h hold, g guard) []int64 {
		p := h.delivered()
		p.Consumer, p.Target, p.AllTenants, p.Scope, p.AcceptLate = g.consumer, g.target, g.all, g.scope, g.late
		return run(f, f.Store.SettleDelivered, p)
	}},
	{"SettleDropped", func(f *fixture, h hold, g guard) []int64 {
		p := h.dropped()
		p.Consumer, p.Target, p.AllTenants, p.Scope, p.AcceptLate = g.consumer, g.target, g.all, g.scope, g.late
		return run(f, f.Store.SettleDropped, p)
	}},
	{"SettleDead", func(f *fixture, h hold, g guard) []int64 {
		p := h.dead("permanent")
		p.Consumer, p.Target, p.AllTenants, p.Scope = g.consumer, g.target, g.all, g.scope
		return run(f, f.Store.SettleDead, p)
	}},
	{"SettleParked", func(f *fixture, h hold, g guard) []int64 {
		p := h.parked()
		p.Consumer, p.Target, p.AllTenants, p.Scope = g.consumer, g.target, g.all, g.scope
		return run(f, f.Store.SettleParked, p)
	}},
	{"SettleRetry", func(f *fixture, h hold, g guard) []int64 {
		p := h.retried(time.Minute)
		p.Consumer, p.Target, p.AllTenants, p.Scope = g.consumer, g.target, g.all, g.scope
		var ids []int64
		for _, row := range run(f, f.Store.SettleRetry, p) {
			ids = append(ids, row.ID)
		}
		return ids
	}},
}

// refusesAll checks that no way to settle changes anything.
func (f *fixture) refusesAll(what string, h hold, g guard) {
	f.Helper()
	f.unchanged("settling with "+what, func() {
		for _, settle := range settles {
			sameIDs(f, settle.name+" with "+what, settle.do(f, h, g))
		}
	})
}

// Shows: S1.27 S3.11 I3
func guardToken(f *fixture) {
	h := f.hold(effect{}, effect{order: "o"})
	late := anywhere
	late.late = true
	for what, token := range map[string][]byte{"a foreign token": f.token(), "an empty token": {}, "nobody's token": db.FreeToken} {
		f.refusesAll(what, h.with(token), anywhere)
		f.refusesAll(what+", late", h.with(token), late)
	}
}

// Shows: S1.27
func guardPlace(f *fixture) {
	h := f.hold(effect{tenant: "a"})
	f.refusesAll("another consumer", h, guard{consumer: "other", target: "t", all: true})
	f.refusesAll("another target", h, guard{consumer: "c", target: "other", all: true})
	f.refusesAll("another scope", h, guard{consumer: "c", target: "t", scope: []string{"", "b"}})
	f.refusesAll("no scope", h, guard{consumer: "c", target: "t"})
	for _, settle := range settles {
		h := f.hold(effect{tenant: "b"})
		sameIDs(f, settle.name+" in scope", settle.do(f, h, guard{consumer: "c", target: "t", scope: []string{"a", "b"}}), h.ids...)
	}
}

func guardOver(f *fixture) {
	h := f.hold(effect{}, effect{order: "o"})
	f.Age(f, leaseTime)
	f.refusesAll("a lease that is over", h, anywhere)
}

// Shows: S3.11
func guardEnded(f *fixture) {
	for _, settle := range settles {
		h := f.hold(effect{order: settle.name})
		sameIDs(f, settle.name, settle.do(f, h, anywhere), h.ids...)
		f.refusesAll("a lease that ended by "+settle.name, h, anywhere)
	}
}

func guardTaken(f *fixture) {
	h := f.hold(some(3)...)
	f.cancel(h.ids[0])
	run(f, f.Store.Release, h.only(1).released())
	next := f.take(f.leasing())
	sameIDs(f, "leased by another", next.ids, h.ids[1])
	late := anywhere
	late.late = true
	f.refusesAll("a lease that is another's", hold{h.ids[:2], h.tokens[:2]}, late)
	f.refusesAll("unknown messages", hold{[]int64{1 << 60}, h.tokens[:1]}, late)
}

// The token of what nobody holds is known to everybody, so it must open nothing, least of all a parked message.
func guardFree(f *fixture) {
	parked := f.park(some(1)...)
	free := f.enqueue(effect{})
	late := anywhere
	late.late = true
	f.refusesAll("nobody's token", hold{parked, nil}.with(db.FreeToken), late)
	f.refusesAll("nobody's token", hold{free, nil}.with(db.FreeToken), late)
}
