package property_test

import (
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// An order is an operator's call about some messages.
type order struct {
	action          string // in the audit table
	name            string // in the tally
	scope           scope
	ids             []int64
	done            outbox.State
	missed, unknown outbox.Status                 // of a message in another state, of one not in the scope
	do              func(m *model, id int64) bool // to the model
}

// acted holds the answers to an order against what the model does.
func (m *machine) acted(o order, got []outbox.Acted) {
	equal(m, "number of answers", len(got), len(o.ids))
	for i, id := range o.ids {
		want := outbox.Acted{ID: id, Status: o.unknown}
		if r := m.model.within(o.scope, id); r != nil {
			tenant := r.tenant
			want = outbox.Acted{ID: id, Status: o.missed, State: outbox.State(r.word(m.model.now))}
			if o.do(&m.model, id) {
				want.Status, want.State = outbox.Done, o.done
				m.acts = append(m.acts, act{action: o.action, message: id, tenant: tenant})
			}
		}
		equal(m, o.name, got[i], want)
		m.count(o.name, string(want.Status))
	}
}

func (m *machine) cancel() {
	theirs, ours := m.drawScope()
	ids := m.drawIDs(func(r *row) bool { return r.state.open() })
	got, err := m.box.Cancel(m.ctx, theirs, ids, by)
	m.must(err)
	m.acted(order{
		action: "cancel", name: "cancel", scope: ours, ids: ids, done: outbox.StateCancelled, missed: outbox.NotOpen, unknown: outbox.NotFound,
		do: func(m *model, id int64) bool { return m.cancel(ours, id, by.Reason) },
	}, got)
}

// replay: what it does not find dead, or not in its scope, it calls alike.
func (m *machine) replay() {
	theirs, ours := m.drawScope()
	ids := m.drawIDs(func(r *row) bool { return r.state == dead })
	attempts := one(m.rt, "attempts", []outbox.Attempts{outbox.PreserveAttempts, outbox.ResetAttempts})
	reset := attempts == outbox.ResetAttempts
	got, err := m.box.Replay(m.ctx, theirs, ids, attempts, by)
	m.must(err)
	m.acted(order{
		action: "replay", name: either(reset, "replay with reset", "replay"), scope: ours, ids: ids,
		done: outbox.StatePending, missed: outbox.NotDead, unknown: outbox.NotDead,
		do: func(m *model, id int64) bool { return m.replay(ours, id, reset) },
	}, got)
}

// replayMatching brings the dead of one consumer back, newest first.
func (m *machine) replayMatching() {
	theirs, ours := m.drawScope()
	c := m.drawClient()
	bulk := outbox.BulkReplay{
		Filter: outbox.Filter{Consumer: c.consumer, Target: c.target}, Attempts: outbox.ResetAttempts, Limit: number(m.rt, "limit", 1, 3),
		DryRun: number(m.rt, "dry run", 0, 3) == 0,
	}
	got, err := m.box.ReplayMatching(m.ctx, theirs, bulk, by)
	m.must(err)
	found := m.model.list(ours, "dead", bulk.Filter)
	ids := found[:min(len(found), bulk.Limit)]
	equal(m, "matched", got.Matched, len(ids))
	if bulk.DryRun {
		equal(m, "replayed", got.Replayed, 0)
		m.count("replay matching", "dry run")
		return
	}
	equal(m, "replayed", got.Replayed, len(ids))
	for _, id := range ids {
		m.acts = append(m.acts, act{action: "replay", message: id, tenant: m.model.find(id).tenant})
		m.model.replay(ours, id, true)
	}
	m.count("replay matching", either(len(ids) > 0, "done", "nothing"))
}

func (m *machine) resolve() {
	theirs, ours := m.drawScope()
	ids := m.drawIDs(func(r *row) bool { return r.state == parked })
	slices.Sort(ids) // of two that die, the first blocks their key
	way := one(m.rt, "as", []struct {
		name    string
		as      outbox.Resolution
		verdict state
	}{
		{"delivered", outbox.AsDelivered, delivered}, {"dead", outbox.AsDead, dead}, {"dead, blocking", outbox.AsDeadBlocking, dead},
		{"retry", outbox.AsRetry, pending},
	})
	got, err := m.box.Resolve(m.ctx, theirs, ids, way.as, by)
	m.must(err)
	m.acted(order{
		action: "resolve", name: "resolve as " + way.name, scope: ours, ids: ids,
		done: outbox.State(way.verdict.String()), missed: outbox.NotParked, unknown: outbox.NotFound,
		do: func(m *model, id int64) bool {
			return m.resolve(ours, id, way.verdict, by.Reason, way.as == outbox.AsDeadBlocking)
		},
	}, got)
}

// drawPattern draws the lanes of a pause within a scope, mostly such that hold a message somebody works on.
func (m *machine) drawPattern() (outbox.LanePattern, outbox.Scope) {
	names := lane{consumer: places[0].consumer, target: places[0].target, kind: "a"}
	if running := m.handsThat(m.runs); len(running) > 0 {
		names = m.model.find(one(m.rt, "hand", running).ID).lane
	}
	or := func(label, name string) string { return one(m.rt, label, []string{name, name, outbox.Any}) }
	pattern := outbox.LanePattern{
		Consumer: or("consumer", names.consumer), Target: or("target", names.target), Kind: or("kind", names.kind), Tenant: or("tenant", names.tenant),
	}
	if pattern.Tenant == outbox.Any {
		return pattern, outbox.AllTenants
	}
	return pattern, outbox.Tenants(pattern.Tenant)
}

func patternOf(p pause) outbox.LanePattern {
	return outbox.LanePattern{Consumer: p.consumer, Target: p.target, Kind: p.kind, Tenant: p.tenant}
}

func (m *machine) pause() {
	pattern, s := m.drawPattern()
	if len(m.model.pauses) > 0 && number(m.rt, "one of them", 0, 2) == 0 {
		pattern, s = patternOf(one(m.rt, "pause", m.model.pauses)), outbox.AllTenants
	}
	mode := one(m.rt, "mode", []outbox.PauseMode{outbox.PauseLeasing, outbox.PauseCancel})
	since, err := m.box.Pause(m.ctx, s, pattern, mode, by)
	m.must(err)
	p := pause{pattern.Consumer, pattern.Target, pattern.Kind, pattern.Tenant, int(mode), by.Actor, by.Reason, m.virtual(since)}
	m.count("pause", either(m.model.resume(p), "replaced", "paused"))
	m.model.setPause(p)
	m.acts = append(m.acts, act{action: "pause", tenant: pattern.Tenant})
	if mode == outbox.PauseCancel {
		m.renew() // which is how handlers learn of it
	}
}

func (m *machine) resume() {
	pattern, s := m.drawPattern()
	if len(m.model.pauses) > 0 && number(m.rt, "one of them", 0, 3) > 0 {
		pattern, s = patternOf(one(m.rt, "pause", m.model.pauses)), outbox.AllTenants
	}
	lifted, err := m.box.Resume(m.ctx, s, pattern, by)
	m.must(err)
	want := m.model.resume(pause{consumer: pattern.Consumer, target: pattern.Target, kind: pattern.Kind, tenant: pattern.Tenant})
	equal(m, "resumed", lifted, want)
	if want {
		m.acts = append(m.acts, act{action: "resume", tenant: pattern.Tenant})
	}
	m.count("resume", either(want, "resumed", "nothing"))
}

func (m *machine) releaseWorker() {
	theirs, ours := m.drawScope()
	name := one(m.rt, "worker", workerNames)
	var ids []int64
	for _, w := range m.workers {
		if w.name == name {
			ids = append(ids, w.id)
		}
	}
	n, err := m.box.ReleaseWorker(m.ctx, theirs, name, by)
	m.must(err)
	released := m.model.takeAway(ours, ids)
	equal(m, "released", n, len(released))
	for _, id := range released {
		m.acts = append(m.acts, act{action: "release", message: id, tenant: m.model.find(id).tenant})
	}
	m.count("release worker", either(n > 0, "released", "nothing"))
}

func (m *machine) unblock() {
	key := orderKey{places[0].consumer, places[0].target, "", "x"}
	if len(m.model.holds) > 0 && number(m.rt, "one of them", 0, 3) > 0 {
		key = one(m.rt, "key", m.model.holds).orderKey
	}
	got, err := m.box.Unblock(m.ctx, outbox.Tenants(key.tenant), outbox.OrderKey{
		Tenant: key.tenant, Consumer: key.consumer, Target: key.target, Key: key.order,
	}, by)
	m.must(err)
	id := m.model.unblock(key)
	equal(m, "unblocked", got, id > 0)
	if id > 0 {
		m.acts = append(m.acts, act{action: "unblock", message: id, tenant: key.tenant})
	}
	m.count("unblock", either(got, "freed", "nothing"))
}

// purge removes what is old of one outcome, a few at a time (I19).
func (m *machine) purge() {
	outcome := one(m.rt, "outcome", []state{delivered, dead, cancelled, expired})
	keep, limit := one(m.rt, "keep", []time.Duration{time.Microsecond, unit, 3 * unit, 12 * time.Hour}), number(m.rt, "limit", 1, 3)
	word := outbox.State(outcome.String())
	theirs, ours := m.drawScope()
	var got outbox.Sweep
	var err error
	if outcome == delivered {
		limit = 1000
		got, err = m.box.PurgeDelivered(m.ctx, theirs, outbox.Cursor{}, keep, limit)
	} else {
		got, err = m.box.PurgeUndelivered(m.ctx, theirs, word, outbox.Cursor{}, keep, limit)
	}
	m.must(err)
	removed := m.model.purge(ours, outcome, micros(keep), limit)
	equal(m, "purged "+string(word), got.Count, len(removed))
	m.removed += got.Count
	m.count("purge "+string(word), either(got.Count > 0, "removed", "nothing"))
}

// expire settles what nobody ever leased (I14).
func (m *machine) expire() {
	grace := one(m.rt, "grace", []time.Duration{0, unit, 24 * time.Hour})
	theirs, ours := m.drawScope()
	overdue, err := m.box.CountOverdue(m.ctx, theirs, outbox.Cursor{}, grace, 1000)
	m.must(err)
	sweep, err := m.box.ExpireUnleased(m.ctx, theirs, outbox.Cursor{}, grace, 1000)
	m.must(err)
	equal(m, "expired and overdue before", sweep.Count, overdue.Count)
	ids := m.model.expire(ours, micros(grace))
	equal(m, "expired", sweep.Count, len(ids))
	for _, id := range ids {
		m.model.find(id).reason = "never leased within its age"
	}
	m.count("expire", either(len(ids) > 0, "expired", "nothing"))
}

// tendWorkers says that a worker is alive, and forgets those that said so too long ago.
func (m *machine) tendWorkers() {
	i := number(m.rt, "worker", 0, len(m.workers)-1)
	alive, err := m.box.TouchWorkers(m.ctx, []int64{m.workers[i].id})
	m.must(err)
	equalAll(m, "alive", alive, []bool{true})
	m.workers[i].at = m.model.now
	m.count("worker", "touched")
	keep := one(m.rt, "keep", []time.Duration{time.Hour, 24 * time.Hour})
	n, err := m.box.PurgeWorkers(m.ctx, keep, 1000)
	m.must(err)
	gone := 0
	for i, w := range m.workers {
		if w.at >= m.model.now-micros(keep) {
			continue
		}
		gone++
		alive, err := m.box.TouchWorkers(m.ctx, []int64{w.id})
		m.must(err)
		equalAll(m, "alive", alive, []bool{false})
		id, err := m.box.RegisterWorker(m.ctx, w.name, "host")
		m.must(err)
		m.workers[i] = worker{id: id, name: w.name, at: m.model.now}
	}
	equal(m, "workers forgotten", n, gone)
	m.count("worker", either(n > 0, "forgotten", "kept"))
}
