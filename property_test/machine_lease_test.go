package property_test

import (
	"errors"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// leasing are the model's arguments of a lease call by a worker; each call has a number in place of its token.
func (m *machine) leasing(c client, s scope, w worker, length time.Duration) leasing {
	m.leases++
	return leasing{
		consumer: c.consumer, target: c.target, scope: s, rule: c.rule, length: micros(length), quota: 1000, limit: 1000,
		token: m.leases, worker: w.id,
	}
}

// lanesOf are all lanes that a consumer may have, of some kinds.
func lanesOf(c client, kinds []string) []lane {
	var lanes []lane
	for _, kind := range kinds {
		for _, tenant := range tenants {
			for _, priority := range priorities {
				lanes = append(lanes, lane{c.consumer, c.target, kind, tenant, priority})
			}
		}
	}
	return lanes
}

// lease takes all that is due, by the call for people with a loop of their own.
func (m *machine) lease() {
	c, w := m.drawClient(), one(m.rt, "worker", m.workers)
	theirs, ours := m.drawScope()
	length := one(m.rt, "length", lengths)
	handled := one(m.rt, "kinds", [][]string{kinds, kinds, kinds, kinds, {"a"}, {}}) // I23: none leases nothing
	request := outbox.LeaseRequest{Worker: w.id, Kinds: handled, Scope: theirs, Limit: 1000, For: length}
	sent := m.sent()
	messages, err := m.box.Lease(m.ctx, c.Consumer, request)
	m.must(err)
	if len(handled) == 0 {
		equal(m, "statements without kinds", m.sent(), sent)
	}
	q := m.leasing(c, ours, w, length)
	q.lanes = lanesOf(c, handled)
	m.leased("lease", q, m.model.lease(q), messages)
}

// leaseLanes takes a little from each of some lanes, as a sender does, sometimes from a mark on.
func (m *machine) leaseLanes() {
	c, w := m.drawClient(), one(m.rt, "worker", m.workers)
	theirs, ours := m.drawScope()
	q := m.leasing(c, ours, w, one(m.rt, "length", lengths))
	q.lanes = some(m.rt, "lanes", lanesOf(c, kinds), number(m.rt, "number of lanes", 4, 8))
	q.quota, q.limit = number(m.rt, "quota", 1, 3), number(m.rt, "limit", 1, 6)
	q.after = m.drawMarks(q.lanes)
	plan := outbox.LeasePlan{
		Consumer: c.Consumer, Worker: w.id, Scope: theirs, For: time.Duration(q.length) * time.Microsecond, Quota: q.quota, Limit: q.limit,
	}
	for i, l := range q.lanes {
		after := outbox.Mark{}
		if q.after[i].due != never {
			after = outbox.Mark{Due: m.actual(q.after[i].due), ID: q.after[i].id}
		}
		plan.Lanes = append(plan.Lanes, outbox.PlannedLane{Lane: outbox.Lane{Kind: l.kind, Tenant: l.tenant, Priority: l.priority}, After: after})
	}
	pass, err := m.box.LeaseLanes(m.ctx, plan)
	m.must(err)
	picks := m.model.lease(q)
	m.leased("lease lanes", q, picks, pass.Messages)
	var died []pick
	for _, p := range picks {
		if p.fate == buried {
			died = append(died, p)
		}
	}
	equal(m, "number of buried", len(pass.Buried), len(died))
	for i, p := range died {
		equal(m, "buried", pass.Buried[i].Message.ID, p.id)
		equal(m, "cause", string(pass.Buried[i].Cause), p.cause)
		m.model.find(p.id).reason = pass.Buried[i].Reason // sync looks at the text
	}
	for i := range q.lanes {
		equal(m, "picked in a lane", pass.Lanes[i].Picked, pickedIn(picks, i))
	}
}

func pickedIn(picks []pick, lane int) int {
	n := 0
	for _, p := range picks {
		n += int(bit(p.lane == lane))
	}
	return n
}

// drawMarks draws places in lanes, at a message or at the front.
func (m *machine) drawMarks(lanes []lane) []mark {
	marks := slices.Repeat([]mark{{due: never}}, len(lanes))
	for i, l := range lanes {
		if due := m.model.due(l); len(due) > 0 && number(m.rt, "marked", 0, 7) == 0 {
			r := one(m.rt, "mark", due)
			marks[i] = mark{r.due, r.id}
		}
	}
	return marks
}

// leased holds the messages of a call against what the model picked, and gives them to the worker.
func (m *machine) leased(action string, q leasing, picks []pick, messages []outbox.Message) {
	var ids, got []int64
	for _, p := range picks {
		switch p.fate {
		case granted:
			ids = append(ids, p.id)
			m.count(action, "granted")
		case buried:
			m.count(action, "buried: "+p.cause)
		case refused:
			m.count(action, "refused")
		}
	}
	if len(picks) == 0 {
		m.count(action, "nothing")
	}
	for _, message := range messages {
		got = append(got, message.ID)
	}
	if action == "lease" { // which promises no order among lanes of one priority
		slices.Sort(ids)
		slices.Sort(got)
	}
	equalAll(m, "leased", got, ids)
	for _, message := range messages {
		m.hold(message, q.token)
	}
}

// hold looks at a message that was granted and keeps it.
func (m *machine) hold(message outbox.Message, call int64) {
	r := m.model.find(message.ID)
	m.same(message, r)
	m.claims[r.id] = message.LeasedUntil
	m.hands = append(m.hands, hand{message, call})
	if len(m.hands) > 16 {
		m.hands = m.hands[1:]
	}
}

// same compares a message with the model's, byte for byte (I17).
func (m *machine) same(message outbox.Message, r *row) {
	e := m.effects[r.id]
	equal(m, "lane", lane{message.Consumer, message.Target, message.Kind, message.Tenant, message.Priority}, r.lane)
	equal(m, "key", message.Key, r.key)
	equal(m, "order key", message.OrderKey, r.order)
	equal(m, "payload", string(message.Payload), string(e.Payload))
	equal(m, "metadata", content(outbox.Effect{Metadata: message.Metadata}), content(outbox.Effect{Metadata: e.Metadata}))
	equal(m, "creation", m.virtual(message.CreatedAt), r.created)
	equal(m, "due", m.virtual(message.DueAt), r.due)
	equal(m, "attempt", message.Attempt, r.attempt)
	equal(m, "epoch", message.Epoch, r.epoch)
	equal(m, "replays", message.Replays, r.replays)
	equal(m, "unsure", message.Unsure, r.unsure)
}

// leaseSuccessors takes the heads of the order keys of messages that a worker knows, settled or not.
func (m *machine) leaseSuccessors() {
	c, w := m.drawClient(), one(m.rt, "worker", m.workers)
	theirs, ours := m.drawScope()
	length := one(m.rt, "length", lengths)
	var settled []outbox.Message
	var wanted []orderKey
	for _, h := range m.hands {
		key := orderKey{c.consumer, c.target, h.Tenant, h.OrderKey}
		settled = append(settled, h.Message)
		if h.OrderKey != "" && !slices.Contains(wanted, key) {
			wanted = append(wanted, key)
		}
	}
	handled := one(m.rt, "kinds", [][]string{kinds, kinds, {"b"}})
	messages, err := m.box.LeaseSuccessors(m.ctx, outbox.SuccessorPlan{
		Consumer: c.Consumer, Worker: w.id, Scope: theirs, For: length, Kinds: handled, Settled: settled,
	})
	m.must(err)
	q := m.leasing(c, ours, w, length)
	ids, got := m.model.successors(q, handled, wanted), []int64{}
	slices.Sort(ids)
	for _, message := range messages {
		got = append(got, message.ID)
	}
	equalAll(m, "successors", got, ids)
	for _, message := range messages {
		m.hold(message, q.token)
		m.count("lease successors", "granted")
	}
	if len(messages) == 0 {
		m.count("lease successors", "nothing")
	}
}

// renew extends some leases, or tries to.
func (m *machine) renew() {
	hands := m.drawHands()
	length := one(m.rt, "length", lengths)
	renewals, err := m.box.Renew(m.ctx, messagesOf(hands), length)
	m.must(err)
	m.renewing = true
	equal(m, "number of renewals", len(renewals), len(hands))
	for i, h := range hands {
		got := renewals[i]
		if !m.model.renew(h.handle(), micros(length)) {
			want := outbox.ErrLeaseLost
			if r := m.model.find(h.ID); r != nil && r.state == cancelled {
				want = outbox.ErrCancelled // I18
			}
			m.renewed(got, want)
			equal(m, "until", got.Until, time.Time{})
			continue
		}
		m.claims[h.ID] = got.Until
		if m.model.pausedAt(m.model.find(h.ID).lane) == 1 {
			m.renewed(got, outbox.ErrPaused)
		} else {
			m.renewed(got, nil)
		}
	}
}

func (m *machine) renewed(got outbox.Renewal, want error) {
	if !errors.Is(got.Err, want) {
		m.rt.Fatalf("renewal: the store says %v, the model %v", got.Err, want)
	}
	word := "renewed"
	if want != nil {
		word = want.Error()
	}
	m.count("renew", word)
}

// release gives some leases back, or tries to.
func (m *machine) release() {
	hands := m.drawHands()
	releasings := make([]outbox.Releasing, len(hands))
	for i, h := range hands {
		releasings[i] = outbox.Releasing{Message: h.Message, Started: number(m.rt, "started", 0, 1) == 1}
	}
	m.must(m.box.ReleaseMany(m.ctx, releasings))
	for i, h := range hands {
		m.count("release", either(m.model.release(h.handle(), releasings[i].Started), "released", "stale"))
	}
}
