package property_test

import (
	"cmp"
	"slices"
)

// A fate is what a lease made of a message it picked.
type fate int

const (
	refused fate = iota // its order key is not free
	granted
	buried // dead instead of leased
)

// A leasing is the arguments of a lease.
type leasing struct {
	consumer, target string
	lanes            []lane
	after            []mark // of each lane; none: the front
	scope            scope
	rule             rule
	length           instant
	quota, limit     int
	examine          int // entries of a lane; 0: all
	token, worker    int64
}

// A mark is a place in a lane, in the order of leasing.
type mark struct {
	due instant
	id  int64
}

func (a mark) compare(b mark) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) }

// A pick is a message that a lease came upon.
type pick struct {
	id    int64
	lane  int
	fate  fate
	cause string
}

// lease picks first and acts then: what dies in this pass does not make its successor the head before the next.
func (m *model) lease(q leasing) []pick {
	var picks []pick
	for i, l := range q.lanes {
		due := slices.DeleteFunc(m.examined(q, i), func(r *row) bool { return !m.leasable(r) })
		if !q.scope.has(l.tenant) || m.pausedAt(l) >= 0 {
			continue
		}
		for _, r := range due[:min(len(due), q.quota, q.limit-len(picks))] {
			picks = append(picks, pick{id: r.id, lane: i})
		}
	}
	for i := range picks {
		p := &picks[i]
		p.fate, p.cause = m.leaseOne(m.find(p.id), q)
	}
	return picks
}

// due is what of a lane came due, in the order of leasing, whether it can be leased or not.
func (m *model) due(l lane) []*row {
	var due []*row
	for i := range m.rows {
		if r := &m.rows[i]; r.lane == l && r.state == pending && r.due <= m.now {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *row) int { return mark{a.due, a.id}.compare(mark{b.due, b.id}) })
	return due
}

// examined is what a lease looks at of a lane: from its mark on, and only so much.
func (m *model) examined(q leasing, i int) []*row {
	due := m.due(q.lanes[i])
	if q.after != nil {
		due = slices.DeleteFunc(due, func(r *row) bool { return mark{r.due, r.id}.compare(q.after[i]) <= 0 })
	}
	if q.examine > 0 {
		due = due[:min(len(due), q.examine)]
	}
	return due
}

// leasable says whether a message that came due is free. Of an order key only the head is (I21).
func (m *model) leasable(r *row) bool {
	return !live(r.until, m.now) && (r.order == "" || m.head(r.orderKey()) == r.id)
}

func (m *model) leaseOne(r *row, q leasing) (fate, string) {
	cause := ""
	switch {
	case r.spent(q.rule.attempts) && r.held():
		cause = "exhausted" // its last leases were lost (I12)
	case r.spent(q.rule.attempts):
		cause = "attempts"
	case r.tooOld(m.now, q.rule.maxAge[r.kind]):
		cause = "age"
	}
	if cause != "" {
		// A death that blocks an order key waits for it as a lease does, so that every dead head blocks.
		if q.rule.blockOnDead && !m.take(r, never, true) {
			return refused, ""
		}
		m.die(r, cause, "", r.worker, q.rule.blockOnDead)
		return buried, cause
	}
	if !m.take(r, m.now+q.length, false) {
		return refused, ""
	}
	m.grant(r, q)
	return granted, ""
}

// grant counts the attempt before anything is performed (I11) and raises the epoch, which nothing ever lowers (I4). A lease that was lost
// leaves the message unsure.
func (m *model) grant(r *row, q leasing) {
	r.unsure = r.unsure || r.held()
	r.attempt++
	r.epoch++
	r.token, r.worker, r.until = q.token, q.worker, m.now+q.length
}

// successors leases the heads of some order keys, with the guards of lease; what must die is left to lease.
func (m *model) successors(q leasing, kinds []string, keys []orderKey) []int64 {
	var ids []int64
	for _, key := range keys {
		r := m.find(m.head(key))
		if r == nil || !q.scope.has(r.tenant) || !slices.Contains(kinds, r.kind) || m.pausedAt(r.lane) >= 0 {
			continue
		}
		runs := r.state == pending && r.due <= m.now && m.leasable(r) && !r.spent(q.rule.attempts) && !r.tooOld(m.now, q.rule.maxAge[r.kind])
		if runs && m.take(r, m.now+q.length, false) {
			m.grant(r, q)
			ids = append(ids, r.id)
		}
	}
	return ids
}

// A handle is what a worker has of a message it leased: it may be out of date.
type handle struct {
	id, token int64
}

// current is the row of a handle whose token is still that of the row, nil for any other (I3).
func (m *model) current(h handle) *row {
	if r := m.find(h.id); r != nil && r.state.open() && r.held() && r.token == h.token {
		return r
	}
	return nil
}

// renew extends a lease that is not over and never shortens one, unless a step of the clock left it beyond the longest (I15). An ordered
// message is renewed only with its order key (I21): after a step of the clock another may have that, and then the worker is told that the
// lease is lost.
func (m *model) renew(h handle, length instant) bool {
	r := m.current(h)
	if r == nil || r.until <= m.now {
		return false
	}
	r.until = min(max(r.until, m.now+length), m.now+longestLease)
	if r.order == "" {
		return true
	}
	o := m.holdOf(r.orderKey())
	if o == nil || o.id != r.id || o.blocked {
		return false
	}
	o.until = r.until
	return true
}

// release gives a lease back, over or not, and the attempt with it. What a handler had started is unsure (I16).
func (m *model) release(h handle, started bool) bool {
	r := m.current(h)
	if r == nil {
		return false
	}
	r.attempt--
	r.unsure = r.unsure || started
	r.letGo()
	m.free(r.id, false)
	return true
}
