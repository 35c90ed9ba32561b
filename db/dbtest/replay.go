package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var replayTests = []test{
	{name: "brings a dead message back, attempts reset", run: replayResets},
	{name: "brings it back with its attempts", run: replayKeeps},
	{name: "starts the age anew", run: replayRejuvenates},
	{name: "of what is dead only, and once", run: replayOnlyDead},
	{name: "stays in its scope", run: replayScope},
	{name: "frees the key that the message blocked", run: replayUnblocks},
	{name: "runs again when it is the head", run: replayOrder},
	{name: "counts through replays", run: replayCounts},
	{name: "leaves unsure what died without a word", run: replayUnsure},
	{name: "writes who did it and why", run: replayAudited},
}

func replayResets(f *fixture) {
	id := f.bury(effect{tenant: "a", order: "o", priority: 2, payload: []byte("body"), maxAge: time.Hour})[0]
	before := f.dump()
	sameIDs(f, "replayed", run(f, f.Store.ReplayDead, replaying(id)), id)
	after := f.dump()
	same(f, "message", after.Messages, before.Messages)
	same(f, "settlements", len(after.Settlements), 0)
	q := after.Queue[0]
	sameInstant(f, "born", q.BornAt, q.DueAt)
	sameInstant(f, "replayed", q.ReplayedAt, q.DueAt)
	same(f, "queue row", q, tables.Queue{
		MessageID: id, Epoch: 1, DueAt: q.DueAt, BornAt: q.DueAt, ExpiresAt: q.DueAt.Add(time.Hour), LeasedUntil: db.Never, ReplayedAt: q.DueAt,
		AttemptLimit: 1, Replays: 1, Priority: 2, Token: db.FreeToken, Consumer: "c", Target: "t", Kind: "k", Tenant: "a", OrderKey: "o",
	})
}

func replayKeeps(f *fixture) {
	id := f.bury(some(1)...)[0]
	p := replaying(id)
	p.Reset = false
	run(f, f.Store.ReplayDead, p)
	q := f.queued(id)
	same(f, "attempt, limit, epoch", []int64{int64(q.Attempt), int64(q.AttemptLimit), q.Epoch}, []int64{1, 2, 1})
	rows, _ := f.leaseDue(f.limited(1)) // one more lease is always possible
	sameIDs(f, "granted", granted(rows), id)
	same(f, "attempt, epoch, replays", []int64{int64(rows[0].Attempt), rows[0].Epoch, int64(rows[0].Replays)}, []int64{2, 2, 1})
}

func replayRejuvenates(f *fixture) {
	ids := f.enqueue(effect{maxAge: time.Hour})
	f.Age(f, 2*time.Hour)
	f.buried(f.leasing(), ids...)
	run(f, f.Store.ReplayDead, replaying(ids...))
	f.Age(f, 59*time.Minute)
	h := f.take(f.leasing())
	sameIDs(f, "granted within its age anew", h.ids, ids...)
	f.Age(f, time.Minute)
	f.buried(f.leasing(), ids...)
}

func replayOnlyDead(f *fixture) {
	dead, delivered := f.bury(effect{}), f.deliver(effect{})
	cancelled := f.enqueue(effect{})
	f.cancel(cancelled...)
	parked, leased := f.park(effect{}), f.hold(effect{}).ids
	others := []int64{delivered[0], cancelled[0], parked[0], leased[0], 1 << 60}
	f.unchanged("a replay of others", func() { sameIDs(f, "replayed", run(f, f.Store.ReplayDead, replaying(others...))) })
	sameIDs(f, "replayed", run(f, f.Store.ReplayDead, replaying(dead[0], delivered[0])), dead...)
	f.unchanged("a second replay", func() { sameIDs(f, "replayed", run(f, f.Store.ReplayDead, replaying(dead...))) })
}

func replayScope(f *fixture) {
	a, b := f.bury(effect{tenant: "a"}), f.bury(effect{tenant: "b"})
	p := replaying(a[0], b[0])
	p.AllTenants, p.Scope = false, []string{"b"}
	sameIDs(f, "replayed", run(f, f.Store.ReplayDead, p), b...)
	f.fates("dead", a...)
}

func replayUnblocks(f *fixture) {
	f.enqueue(effect{order: "a"}, effect{order: "b"})
	h := f.take(f.leasing())
	p := h.dead("permanent")
	p.BlockOnDead = true
	run(f, f.Store.SettleDead, p)
	next := f.enqueue(effect{order: "a"}, effect{order: "b"})
	run(f, f.Store.ReplayDead, replaying(h.ids[0]))
	same(f, "blocked keys", len(f.dump().OrderLeases), 1)
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "granted", granted(rows), h.ids[0])
	sameIDs(f, "refused", withFate(rows, db.FateRefused), next[1])
}

func replayOrder(f *fixture) {
	dead := f.bury(effect{order: "o"})
	running := f.hold(effect{order: "o"})
	f.enqueue(effect{order: "o"})
	run(f, f.Store.ReplayDead, replaying(dead...))
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "refused while another runs", withFate(rows, db.FateRefused), dead...)
	run(f, f.Store.SettleDelivered, running.delivered())
	sameIDs(f, "granted then", f.take(f.leasing()).ids, dead...)
}

func replayCounts(f *fixture) {
	id := f.bury(some(1)...)[0]
	for n := range int32(3) {
		run(f, f.Store.ReplayDead, replaying(id))
		h := f.take(f.leasing())
		same(f, "replays, epoch", []int64{int64(f.queued(id).Replays), f.queued(id).Epoch}, []int64{int64(n + 1), int64(n + 2)})
		run(f, f.Store.SettleDead, h.dead("moot"))
		s := f.settled(id)
		same(f, "settlement", []int64{int64(s.Replays), s.Epoch, int64(s.Attempt)}, []int64{int64(n + 1), int64(n + 2), 1})
		if s.ReplayedAt.Equal(db.Never) || s.ReplayedAt.After(s.SettledAt) {
			f.Errorf("replayed at %v, settled at %v", s.ReplayedAt, s.SettledAt)
		}
	}
}

func replayAudited(f *fixture) {
	a, b := f.bury(effect{tenant: "a"})[0], f.bury(some(1)...)[0]
	run(f, f.Store.ReplayDead, replaying(a))
	keep := replaying(b)
	keep.Reset = false
	run(f, f.Store.ReplayDead, keep)
	same(f, "audit", f.audits("replay"), []tables.Audit{
		{MessageID: a, Action: "replay", Tenant: "a", Actor: "ann", Reason: "fixed", Detail: "was dead, permanent; attempts reset"},
		{MessageID: b, Action: "replay", Actor: "ann", Reason: "fixed", Detail: "was dead, permanent; attempts kept"},
	})
}

func replayUnsure(f *fixture) {
	check := func(what string, want bool, ids ...int64) {
		f.Helper()
		run(f, f.Store.ReplayDead, replaying(ids...))
		for _, id := range ids {
			same(f, what, f.queued(id).Unsure, want)
		}
		f.cancel(ids...)
	}
	for _, cause := range []string{"permanent", "moot", "attempts"} {
		h := f.hold(some(1)...)
		run(f, f.Store.SettleDead, h.dead(cause))
		check(cause, false, h.ids...)
	}
	lost := f.hold(some(1)...)
	f.Age(f, leaseTime)
	f.buried(f.limited(1), lost.ids...)
	check("exhausted", true, lost.ids...)
	late := f.hold(effect{maxAge: time.Hour})
	f.Age(f, time.Hour)
	f.buried(f.leasing(), late.ids...)
	check("age after a lease", true, late.ids...)
	never := f.enqueue(effect{maxAge: time.Hour})
	f.Age(f, time.Hour)
	f.buried(f.leasing(), never...)
	check("age before any lease", false, never...)
}
