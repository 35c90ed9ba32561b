package dbtest

import (
	"github.com/fencepost-go/fencepost/db"
)

var releaseTests = []test{
	{name: "gives the attempt back and keeps the epoch", run: releaseUnspent},
	{name: "gives back a lease that is over but not taken", run: releaseLate},
	{name: "changes nothing of a lease that is not ours", run: releaseGuards},
	{name: "frees the order key", run: releaseOrder},
	{name: "leaves unsure what had started, and what was", run: releaseUnsure},
}

func releaseUnspent(f *fixture) {
	f.enqueue(some(1)...)
	before := f.dump().Queue[0]
	h := f.take(f.leasing())
	sameIDs(f, "released", run(f, f.Store.Release, h.released()), h.ids...)
	before.Epoch = 1
	same(f, "queue row", f.queued(h.ids[0]), before)
	rows, _ := f.leaseDue(f.leasing())
	same(f, "granted anew", []any{rows[0].Attempt, rows[0].Epoch, rows[0].Unsure}, []any{int32(1), int64(2), false})
}

func releaseLate(f *fixture) {
	h := f.hold(some(1)...)
	f.Age(f, leaseTime)
	sameIDs(f, "released", run(f, f.Store.Release, h.released()), h.ids...)
	same(f, "attempt", f.queued(h.ids[0]).Attempt, 0)
}

func releaseGuards(f *fixture) {
	f.enqueue(effect{kind: "free"})
	free := f.dump().Queue[0].MessageID
	parked := f.park(some(1)...)[0]
	h := f.hold(some(2)...)
	run(f, f.Store.SettleDelivered, h.only(0).delivered())
	f.unchanged("a release", func() {
		sameIDs(f, "released when settled", run(f, f.Store.Release, h.only(0).released()))
		for what, token := range map[string][]byte{"a foreign token": f.token(), "no token": {}, "nobody's token": db.FreeToken} {
			sameIDs(f, what, run(f, f.Store.Release, h.only(1).with(token).released()))
		}
		sameIDs(f, "released of a parked one", run(f, f.Store.Release, hold{[]int64{parked}, [][]byte{db.FreeToken}}.released()))
		sameIDs(f, "released of a free one", run(f, f.Store.Release, hold{[]int64{free}, [][]byte{db.FreeToken}}.released()))
	})
}

func releaseOrder(f *fixture) {
	h := f.hold(effect{order: "o"})
	run(f, f.Store.Release, h.released())
	same(f, "order leases", len(f.dump().OrderLeases), 0)
	sameIDs(f, "granted anew", f.take(f.leasing()).ids, h.ids...)
}

func releaseUnsure(f *fixture) {
	f.enqueue(some(2)...)
	for _, want := range [][]bool{{false, true}, {true, true}} {
		h := f.take(f.leasing())
		p := h.released()
		p.Unsures = []bool{want[0], !want[0]}
		sameIDs(f, "released", run(f, f.Store.Release, p), h.ids...)
		same(f, "unsure", []bool{f.queued(h.ids[0]).Unsure, f.queued(h.ids[1]).Unsure}, want)
	}
}
