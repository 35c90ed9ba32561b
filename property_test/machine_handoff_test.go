package property_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// A handing is a worker of the producer's own process, to whom messages may be born leased.
type handing struct {
	client
	worker worker
	scope  scope
	length time.Duration
	room   int
}

// takes says whether an effect may be the worker's, as far as that is known before its statement.
func (h *handing) takes(e outbox.Effect) bool {
	return e.Consumer == h.consumer && e.Target == h.target && e.OrderKey == "" && e.Delay == 0 && e.DueAt.IsZero() && h.scope.has(e.Tenant)
}

// enqueueHandedOff enqueues to a worker of its own, who confirms what Committed names: also where that is wrong, since a savepoint or the whole
// transaction was rolled back.
func (m *machine) enqueueHandedOff() {
	const action = "enqueue handed off"
	c, w := m.drawClient(), one(m.rt, "worker", m.workers)
	theirs, ours := m.drawScope()
	m.handing = &handing{c, w, ours, one(m.rt, "length", lengths), number(m.rt, "room", 0, 4)}
	defer func() { m.handing = nil }()
	handOff, err := m.box.HandOff(outbox.HandOffPlan{Consumer: c.Consumer, Kinds: kinds, Scope: theirs, For: m.handing.length, Ask: time.Hour})
	m.must(err)
	defer handOff.End()
	handOff.Offer(outbox.Offer{Worker: w.id, Room: m.handing.room})

	tx, effects := m.stage.begin(m.t), m.drawEffects(number(m.rt, "effects", 1, 4))
	receipts, err := m.box.EnqueueMany(m.ctx, tx.Tx, effects)
	stored, named := m.check(action, nil, effects, receipts, err), receipts
	if tx.exec != nil && rapid.Bool().Draw(m.rt, "savepoint") {
		more := m.drawEffects(number(m.rt, "effects", 1, 4))
		m.must(tx.exec("SAVEPOINT before"))
		receipts, err := m.box.EnqueueMany(m.ctx, tx.Tx, more)
		m.check(action, stored, more, receipts, err)
		m.must(tx.exec("ROLLBACK TO SAVEPOINT before"))
		m.count(action, savepoint)
		named = slices.Concat(named, receipts)
	}
	m.finish(action, tx, stored)
	m.sync()

	named.Committed()
	length := one(m.rt, "length", lengths)
	taken := handOff.Take(time.Now())
	confirmed, paused, err := handOff.Confirm(m.ctx, taken, length)
	m.must(err)
	m.renewing = true
	var ids []int64
	for _, s := range stored {
		if s.held != nil && m.recorded[s.id] {
			equal(m, "confirmed", m.model.renew(handle{s.id, s.held.token}, micros(length)), true)
			ids = append(ids, s.id)
		}
	}
	var got []int64
	for i, message := range confirmed {
		got = append(got, message.ID)
		m.hold(message, stored[slices.IndexFunc(stored, func(s written) bool { return s.id == confirmed[i].ID })].held.token)
		m.count(action, "confirmed")
	}
	equalAll(m, "confirmed", got, ids)
	equal(m, "paused", len(paused), 0)
	if len(taken) > len(confirmed) {
		m.count(action, "not there")
	}
}
