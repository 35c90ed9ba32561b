package property_test

// A settler is who settles: a settle matches all of it (I3, I22).
type settler struct {
	consumer, target string
	scope            scope
	rule             rule
}

// settleable is the row that a handle may settle: the token is current and the lease not over. late lifts the last.
func (m *model) settleable(by settler, h handle, late bool) *row {
	r := m.current(h)
	if r == nil || r.consumer != by.consumer || r.target != by.target || !by.scope.has(r.tenant) || r.until <= m.now && !late {
		return nil
	}
	return r
}

// deliver records success, or removes the message where the policy keeps nothing.
func (m *model) deliver(by settler, h handle, result string) bool {
	r := m.settleable(by, h, by.rule.acceptLate)
	if r == nil {
		return false
	}
	m.end(r, delivered, r.worker)
	r.result = result
	if by.rule.drop {
		m.erase(r.id)
	}
	return true
}

// A retrying is how a failed attempt goes on.
type retrying struct {
	delay   instant
	unspent bool // the attempt does not count
	unsure  bool
	reason  string
}

// retry frees a message for another attempt. One that is too old by now dies instead (I14).
func (m *model) retry(by settler, h handle, t retrying) (settled, aged bool) {
	r := m.settleable(by, h, false)
	if r == nil {
		return false, false
	}
	if r.tooOld(m.now, by.rule.maxAge[r.kind]) {
		m.die(r, "age", "", r.worker, by.rule.blockOnDead)
		return true, true
	}
	if t.unspent {
		r.attempt--
	}
	r.due, r.unsure, r.lastError = m.now+t.delay, t.unsure, t.reason
	r.letGo()
	m.free(r.id, false)
	return true, false
}

func (m *model) bury(by settler, h handle, cause, reason string) bool {
	r := m.settleable(by, h, false)
	if r == nil {
		return false
	}
	m.die(r, cause, reason, r.worker, by.rule.blockOnDead)
	return true
}

// park sets a message aside whose outcome is unknown (I16).
func (m *model) park(by settler, h handle, reason string) bool {
	r := m.settleable(by, h, false)
	if r == nil {
		return false
	}
	r.state, r.unsure, r.lastError = parked, true, reason
	r.letGo()
	m.free(r.id, false)
	return true
}
