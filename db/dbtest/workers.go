package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var workerTests = []test{
	{name: "are registered and touched", run: workersRegister},
	{name: "are forgotten when not seen for long", run: workersPurge},
	{name: "lose their leases when released by name, the attempts spent", run: workersRelease},
	{name: "in pages of what is examined", run: workersReleasePages},
	{name: "in the scope only", run: workersReleaseScope},
	{name: "a released order key is free", run: workersReleaseOrder},
}

func (f *fixture) register(name string) int64 {
	f.Helper()
	return one(f, f.Store.RegisterWorker, db.RegisterWorkerParams{Name: name, Host: "host"})
}

func workersRegister(f *fixture) {
	first, second := f.register("w"), f.register("w")
	if first == 0 || first == second {
		f.Errorf("registered %d and %d", first, second)
	}
	f.Age(f, time.Hour)
	before := f.dump().Workers
	same(f, "touched", one(f, f.Store.TouchWorkers, db.TouchWorkersParams{Ids: []int64{first}}), first)
	sameIDs(f, "touched an unknown one", run(f, f.Store.TouchWorkers, db.TouchWorkersParams{Ids: []int64{1 << 60}}))
	after := f.dump().Workers
	same(f, "the other", after[1], before[1])
	if seen := after[0].SeenAt.Sub(before[0].SeenAt); seen < time.Hour {
		f.Errorf("seen %v later", seen)
	}
	same(f, "worker", after[0], tables.Worker{ID: first, StartedAt: before[0].StartedAt, SeenAt: after[0].SeenAt, Name: "w", Host: "host"})
}

func workersPurge(f *fixture) {
	a, b, c := f.register("a"), f.register("b"), f.register("c")
	f.Age(f, time.Hour+time.Second) // strictly longer ago than the hour, also by a clock that has not ticked since
	d := f.register("d")
	run(f, f.Store.TouchWorkers, db.TouchWorkersParams{Ids: []int64{b}})
	keep := func(d time.Duration, maxRows int32) []int64 {
		return run(f, f.Store.PurgeWorkers, db.PurgeWorkersParams{Keep: d.Microseconds(), MaxRows: maxRows})
	}
	sameIDs(f, "purged after two hours", keep(2*time.Hour, 100))
	sameIDs(f, "purged, one at most", keep(time.Hour, 1), a)
	sameIDs(f, "purged", keep(time.Hour, 100), c)
	sameIDs(f, "touched", run(f, f.Store.TouchWorkers, db.TouchWorkersParams{Ids: []int64{a}}))
	same(f, "left", []int64{f.dump().Workers[0].ID, f.dump().Workers[1].ID}, []int64{b, d})
}

// takeAs leases the zero lane as a registered worker.
func (f *fixture) takeAs(worker int64, lanes ...lane) hold {
	f.Helper()
	p := f.leasing(lanes...)
	p.Worker = worker
	return f.take(p)
}

func releasing(worker string) db.ReleaseWorkerParams {
	return db.ReleaseWorkerParams{Worker: worker, Examine: 1000, AllTenants: true, Actor: "ann", Reason: "host is gone"}
}

// takeAway releases a worker's leases and returns the released ids and the last one looked at.
func (f *fixture) takeAway(p db.ReleaseWorkerParams) (released []int64, last int64) {
	f.Helper()
	for _, row := range run(f, f.Store.ReleaseWorker, p) {
		if row.Released {
			released = append(released, row.ID)
		} else {
			last = row.ID
		}
	}
	return released, last
}

func workersRelease(f *fixture) {
	first, again, other := f.register("w"), f.register("w"), f.register("x")
	a, b := f.enqueue(some(1)...), f.enqueue(effect{priority: 1})
	c, free := f.enqueue(effect{priority: 2}), f.enqueue(effect{priority: 3})
	h := f.takeAs(first)
	f.takeAs(again, lane{priority: 1})
	f.takeAs(other, lane{priority: 2})
	released, last := f.takeAway(releasing("w"))
	sameIDs(f, "released", released, a[0], b[0])
	same(f, "last", last, free[0])
	q := f.queued(a[0])
	same(f, "queue row", []any{q.Attempt, q.Epoch, q.Unsure, q.LeasedBy}, []any{int32(1), int64(1), true, int64(0)})
	f.fates("leased", c[0])
	f.refusesAll("the lease before", h, anywhere)
	same(f, "audit", f.audits("release")[0], tables.Audit{MessageID: a[0], Action: "release", Actor: "ann", Reason: "host is gone", Detail: "w"})
	sameIDs(f, "granted anew", f.take(f.leasing()).ids, a[0])
}

func workersReleasePages(f *fixture) {
	w := f.register("w")
	ids := f.enqueue(some(5)...)
	f.takeAs(w)
	p := releasing("w")
	p.Examine = 2
	for _, want := range [][]int64{ids[0:2], ids[2:4], ids[4:5]} {
		released, last := f.takeAway(p)
		sameIDs(f, "released", released, want...)
		same(f, "last", last, want[len(want)-1])
		p.AfterID = last
	}
	same(f, "rows at the end", len(run(f, f.Store.ReleaseWorker, p)), 0)
}

func workersReleaseScope(f *fixture) {
	w := f.register("w")
	ids := f.enqueue(effect{tenant: "a"}, effect{tenant: "b"})
	f.takeAs(w, lane{tenant: "a"}, lane{tenant: "b"})
	p := releasing("w")
	p.AllTenants, p.Scope = false, []string{"b"}
	released, _ := f.takeAway(p)
	sameIDs(f, "released", released, ids[1])
	released, _ = f.takeAway(releasing("absent"))
	sameIDs(f, "released of nobody", released)
}

func workersReleaseOrder(f *fixture) {
	w := f.register("w")
	f.enqueue(ordered("o", 2)...)
	h := f.takeAs(w)
	f.takeAway(releasing("w"))
	same(f, "order leases", len(f.dump().OrderLeases), 0)
	sameIDs(f, "granted anew", f.take(f.leasing()).ids, h.ids...)
}
