package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var cancelTests = []test{
	{name: "ends what is open, leased ones included", run: cancelsOpen},
	{name: "is final", run: cancelIsFinal},
	{name: "stays in its scope", run: cancelsScopeOnly},
	{name: "frees the order key", run: cancelFreesKey},
	{name: "writes who did it and why", run: cancelAudited},
}

func cancelsOpen(f *fixture) {
	pending := f.enqueue(effect{kind: "waits"}, effect{kind: "waits", delay: time.Hour})
	parked, leased := f.park(effect{}), f.hold(effect{}).ids
	f.cancel(pending[0], pending[1], parked[0], leased[0])
	s := f.settled(leased[0])
	same(f, "settlement", s, tables.Settlement{
		MessageID: leased[0], Epoch: 1, SettledAt: s.SettledAt, ReplayedAt: db.Never, Attempt: 1, Outcome: "cancelled", Reason: "by hand",
	})
	same(f, "queue", len(f.dump().Queue), 0)
}

// Shows: S4.7 I18
func cancelIsFinal(f *fixture) {
	h := f.hold(some(1)...)
	f.cancel(h.ids...)
	delivered, dead := f.deliver(effect{}), f.bury(effect{})
	late := anywhere
	late.late = true
	f.refusesAll("the lease before the cancel", h, late)
	f.unchanged("acts on settled messages", func() {
		ids := []int64{h.ids[0], delivered[0], dead[0], 1 << 60}
		sameIDs(f, "cancelled", run(f, f.Store.CancelOpen, db.CancelOpenParams{Ids: ids, AllTenants: true, Actor: "ann", Reason: "again"}))
		sameIDs(f, "replayed", run(f, f.Store.ReplayDead, replaying(h.ids[0], delivered[0])))
		sameIDs(f, "resolved", run(f, f.Store.ResolveRetry, db.ResolveRetryParams{Ids: ids, AllTenants: true, Actor: "ann", Reason: "again"}))
		same(f, "renewed", len(run(f, f.Store.Renew, h.renewed(leaseTime))), 0)
		sameIDs(f, "released", run(f, f.Store.Release, h.released()))
	})
}

func cancelsScopeOnly(f *fixture) {
	ids := f.enqueue(effect{tenant: "a"}, effect{tenant: "b"}, effect{})
	p := db.CancelOpenParams{Ids: ids, Scope: []string{"b", "c"}, Actor: "ann", Reason: "by hand"}
	sameIDs(f, "cancelled", run(f, f.Store.CancelOpen, p), ids[1])
	f.fates("pending", ids[0], ids[2])
}

func cancelFreesKey(f *fixture) {
	h := f.hold(effect{order: "o"})
	next := f.enqueue(effect{order: "o"})
	f.cancel(h.ids...)
	same(f, "order leases", len(f.dump().OrderLeases), 0)
	sameIDs(f, "granted", f.take(f.leasing()).ids, next...)
}

// audits returns the acts of a kind, without their ids and instants.
func (f *fixture) audits(action string) []tables.Audit {
	f.Helper()
	var acts []tables.Audit
	for _, act := range f.dump().Audits {
		if act.Action == action {
			if act.At.IsZero() || act.At.After(f.dump().Now) {
				f.Errorf("%s at %v", action, act.At)
			}
			act.ID, act.At = 0, time.Time{}
			acts = append(acts, act)
		}
	}
	return acts
}

func cancelAudited(f *fixture) {
	parked, pending := f.park(effect{tenant: "a"}), f.enqueue(effect{})
	f.cancel(parked[0], pending[0])
	same(f, "audit", f.audits("cancel"), []tables.Audit{
		{MessageID: parked[0], Action: "cancel", Tenant: "a", Actor: "ann", Reason: "by hand", Detail: "was parked"},
		{MessageID: pending[0], Action: "cancel", Actor: "ann", Reason: "by hand", Detail: "was pending"},
	})
}
