package property_test

import (
	"cmp"
	"slices"
)

// cancel ends an open message, leased or not; whoever works on it is stale from now on (I18).
func (m *model) cancel(s scope, id int64, reason string) bool {
	r := m.within(s, id)
	if r == nil || !r.state.open() {
		return false
	}
	m.end(r, cancelled, 0)
	r.reason = reason
	return true
}

// replay brings a dead message back with one more lease possible. The envelope and the epoch stay (I17, I4). Where nobody said what became of
// the last lease it is unsure (I16).
func (m *model) replay(s scope, id int64, reset bool) bool {
	r := m.within(s, id)
	if r == nil || r.state != dead {
		return false
	}
	m.free(r.id, true)
	attempt := r.attempt
	if reset {
		attempt = 0
	}
	*r = row{
		envelope: r.envelope, state: pending, epoch: r.epoch, attempt: attempt, limit: attempt + 1,
		replays: r.replays + 1, replayed: m.now, due: m.now, until: never,
		unsure: r.epoch > 0 && (r.cause == "age" || r.cause == "exhausted"),
	}
	r.restart(m.now)
	return true
}

// resolve decides what became of a parked message: delivered, dead, or pending for another run (I16).
func (m *model) resolve(s scope, id int64, verdict state, reason string, block bool) bool {
	r := m.within(s, id)
	if r == nil || r.state != parked {
		return false
	}
	switch verdict {
	case delivered:
		m.end(r, delivered, 0)
		r.reason = reason
	case dead:
		m.die(r, "permanent", reason, 0, block)
	default:
		r.state, r.due, r.limit = pending, m.now, r.attempt+1
		r.restart(m.now)
	}
	return true
}

// takeAway ends the leases of some workers. The attempts stay spent, and nobody knows how far the handlers came.
func (m *model) takeAway(s scope, workers []int64) []int64 {
	var ids []int64
	for i := range m.rows {
		r := &m.rows[i]
		if r.state.open() && r.held() && slices.Contains(workers, r.worker) && s.has(r.tenant) {
			r.unsure = true
			r.letGo()
			m.free(r.id, false)
			ids = append(ids, r.id)
		}
	}
	return ids
}

// unblock frees a key that a dead message holds, and names the message.
func (m *model) unblock(key orderKey) int64 {
	h := m.holdOf(key)
	if h == nil || !h.blocked {
		return 0
	}
	id := h.id
	m.free(id, true)
	return id
}

func (m *model) setPause(p pause) {
	m.resume(p)
	m.pauses = append(m.pauses, p)
}

// resume lifts the pause of exactly these names.
func (m *model) resume(p pause) bool {
	n := len(m.pauses)
	m.pauses = slices.DeleteFunc(m.pauses, func(o pause) bool {
		return o.consumer == p.consumer && o.target == p.target && o.kind == p.kind && o.tenant == p.tenant
	})
	return len(m.pauses) < n
}

// purge removes what was settled with one outcome strictly more than keep ago, looking at no more than limit (I19). Delivered ones go by id, others
// oldest first. A key that a purged message blocked is free.
func (m *model) purge(s scope, outcome state, keep instant, limit int) []int64 {
	var old []*row
	for i := range m.rows {
		if r := &m.rows[i]; r.state == outcome && r.settled < m.now-keep {
			old = append(old, r)
		}
	}
	if outcome != delivered {
		slices.SortStableFunc(old, func(a, b *row) int { return cmp.Compare(a.settled, b.settled) })
	}
	var ids []int64
	for _, r := range old[:min(limit, len(old))] {
		if s.has(r.tenant) {
			ids = append(ids, r.id)
		}
	}
	for _, id := range ids {
		m.free(id, true)
		m.erase(id)
	}
	return ids
}

// expire settles what nobody ever leased within its age and the grace after it (I14).
func (m *model) expire(s scope, grace instant) []int64 {
	var ids []int64
	for i := range m.rows {
		if r := &m.rows[i]; r.state == pending && r.epoch == 0 && r.expires <= m.now-grace && s.has(r.tenant) {
			m.end(r, expired, 0)
			ids = append(ids, r.id)
		}
	}
	return ids
}
