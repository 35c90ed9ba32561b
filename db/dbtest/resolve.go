package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var resolveTests = []test{
	{name: "as delivered", run: resolvesDelivered},
	{name: "as dead", run: resolvesDead},
	{name: "as dead, blocking the order key", run: resolvesDeadBlocked},
	{name: "as dead, blocking no key that another holds", run: resolvesBesideRunning},
	{name: "as to be tried again", run: resolvesRetry},
	{name: "what is parked only", run: resolvesParkedOnly},
	{name: "in its scope", run: resolvesScope},
	{name: "writing who did it and why", run: resolveAudited},
}

func resolving(outcome string, ids ...int64) db.ResolveSettledParams {
	return db.ResolveSettledParams{
		Ids: ids, Outcome: outcome, AllTenants: true, Actor: "ann", Reason: "asked the bank", LongestLease: db.LongestLease.Microseconds(),
	}
}

func retrying(ids ...int64) db.ResolveRetryParams {
	return db.ResolveRetryParams{Ids: ids, AllTenants: true, Actor: "ann", Reason: "asked the bank"}
}

func resolvesDelivered(f *fixture) {
	id := f.park(some(1)...)[0]
	sameIDs(f, "resolved", run(f, f.Store.ResolveSettled, resolving("delivered", id)), id)
	s := f.settled(id)
	same(f, "settlement", s, tables.Settlement{
		MessageID: id, Epoch: 1, SettledAt: s.SettledAt, ReplayedAt: db.Never, Attempt: 1, Outcome: "delivered", Reason: "asked the bank",
	})
}

func resolvesDead(f *fixture) {
	id := f.park(effect{order: "o"})[0]
	next := f.enqueue(effect{order: "o"})
	sameIDs(f, "resolved", run(f, f.Store.ResolveSettled, resolving("dead", id)), id)
	s := f.settled(id)
	same(f, "settlement", []string{s.Outcome, s.Cause, s.Reason}, []string{"dead", "permanent", "asked the bank"})
	sameIDs(f, "granted next", f.take(f.leasing()).ids, next...)
}

func resolvesDeadBlocked(f *fixture) {
	f.enqueue(effect{order: "a"}, effect{order: "b"}, effect{})
	h := f.take(f.leasing())
	run(f, f.Store.SettleParked, h.parked())
	for _, outcome := range []string{"dead", "delivered"} {
		p := resolving(outcome, h.ids...)
		p.BlockOnDead = true
		if outcome == "dead" {
			p.Ids = []int64{h.ids[0], h.ids[2]}
		}
		run(f, f.Store.ResolveSettled, p)
	}
	same(f, "order leases", f.dump().OrderLeases, []tables.OrderLease{
		{MessageID: h.ids[0], LeasedUntil: db.Never, Blocked: true, Consumer: "c", Target: "t", OrderKey: "a"},
	})
}

func resolvesBesideRunning(f *fixture) {
	for _, lost := range []bool{false, true} {
		key := map[bool]string{false: "live", true: "lost"}[lost]
		first, second, commit := f.late(key)
		run(f, f.Store.SettleParked, f.take(f.leasing()).parked())
		if err := commit(); err != nil {
			f.Fatal(err)
		}
		sameIDs(f, "granted", f.take(f.leasing()).ids, first)
		if lost {
			f.Age(f, leaseTime)
		}
		p := resolving("dead", second)
		p.BlockOnDead = true
		sameIDs(f, "resolved", run(f, f.Store.ResolveSettled, p), second)
		o := f.dump().OrderLeases[0]
		same(f, key, []any{o.MessageID, o.Blocked}, map[bool][]any{false: {first, false}, true: {second, true}}[lost])
		if !lost {
			f.cancel(first)
		}
	}
}

func resolvesRetry(f *fixture) {
	id := f.park(effect{maxAge: time.Hour})[0]
	f.Age(f, 2*time.Hour)
	before := f.queued(id)
	sameIDs(f, "resolved", run(f, f.Store.ResolveRetry, retrying(id)), id)
	after := f.queued(id)
	before.State, before.AttemptLimit = tables.Pending, 2
	before.DueAt, before.BornAt, before.ExpiresAt = after.DueAt, after.DueAt, after.DueAt.Add(time.Hour)
	same(f, "queue row", after, before)
	rows, _ := f.leaseDue(f.limited(1)) // one more lease is always possible
	sameIDs(f, "granted", granted(rows), id)
	same(f, "attempt, unsure", []any{rows[0].Attempt, rows[0].Unsure}, []any{int32(2), true})
}

func resolvesParkedOnly(f *fixture) {
	dead, delivered := f.bury(effect{}), f.deliver(effect{})
	pending, leased := f.enqueue(effect{kind: "waits"}), f.hold(effect{}).ids
	others := []int64{dead[0], delivered[0], pending[0], leased[0], 1 << 60}
	f.unchanged("a resolve of others", func() {
		sameIDs(f, "delivered", run(f, f.Store.ResolveSettled, resolving("delivered", others...)))
		sameIDs(f, "dead", run(f, f.Store.ResolveSettled, resolving("dead", others...)))
		sameIDs(f, "retry", run(f, f.Store.ResolveRetry, retrying(others...)))
	})
}

func resolvesScope(f *fixture) {
	f.enqueue(effect{tenant: "a"}, effect{tenant: "b"})
	h := f.take(f.leasing(lane{tenant: "a"}, lane{tenant: "b"}))
	run(f, f.Store.SettleParked, h.parked())
	settled, retry := resolving("dead", h.ids...), retrying(h.ids...)
	settled.AllTenants, settled.Scope = false, []string{"a"}
	retry.AllTenants, retry.Scope = false, []string{"b", ""}
	sameIDs(f, "settled", run(f, f.Store.ResolveSettled, settled), h.ids[0])
	sameIDs(f, "retried", run(f, f.Store.ResolveRetry, retry), h.ids[1])
}

func resolveAudited(f *fixture) {
	h := f.hold(effect{tenant: "a"}, effect{tenant: "a"}, effect{tenant: "a"})
	run(f, f.Store.SettleParked, h.parked())
	run(f, f.Store.ResolveSettled, resolving("delivered", h.ids[0]))
	run(f, f.Store.ResolveSettled, resolving("dead", h.ids[1]))
	run(f, f.Store.ResolveRetry, retrying(h.ids[2]))
	var want []tables.Audit
	for i, detail := range []string{"was parked; delivered", "was parked; dead", "was parked; retry"} {
		want = append(want, tables.Audit{
			MessageID: h.ids[i], Action: "resolve", Tenant: "a", Actor: "ann", Reason: "asked the bank", Detail: detail,
		})
	}
	same(f, "audit", f.audits("resolve"), want)
}
