package property_test

import (
	"errors"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// A written message is one that a transaction stored and nobody sees yet.
type written struct {
	id           int64
	effect       outbox.Effect
	created, due instant
	at           time.Time // no earlier by the store's clock
	held         *leasing  // that it is born with, nil for none
}

// late is a transaction that commits some steps after it wrote (I21: what commits late is never skipped).
type late struct {
	tx      caller
	written []written
}

// shift moves what the transaction wrote on the model's clock when that is set: its instants stay where they are.
func (l *late) shift(by instant) {
	for i := range l.written {
		l.written[i].created += by
		l.written[i].due += by
	}
}

// taken are the keys that the open transaction has: another that enqueues one would wait for its end.
func (m *machine) taken() map[identity]bool {
	taken := map[identity]bool{}
	if m.open != nil {
		for _, w := range m.open.written {
			taken[identityOf(w.effect)] = true
		}
	}
	return taken
}

func (m *machine) enqueue() {
	tx, effect := m.stage.begin(m.t), m.drawEffect(m.taken())
	if number(m.rt, "invalid", 0, 5) == 0 {
		spoiled := m.spoil(effect)
		m.refuses("enqueue", func() error { _, err := m.box.Enqueue(m.ctx, tx.Tx, spoiled); return err }) // the transaction goes on (I30)
	}
	if number(m.rt, "suppressed", 0, 9) == 0 {
		receipt, err := m.box.Enqueue(outbox.WithSuppressed(m.ctx), tx.Tx, effect)
		m.must(err)
		equal(m, "receipt", receipt, outbox.Receipt{Status: outbox.Suppressed})
		m.count("enqueue", "suppressed") // I23: sync finds no row
	}
	receipt, err := m.box.Enqueue(m.ctx, tx.Tx, effect)
	stored := m.check("enqueue", nil, []outbox.Effect{effect}, outbox.Receipts{receipt}, err)
	m.finish("enqueue", tx, stored)
}

func (m *machine) enqueueMany() {
	tx := m.stage.begin(m.t)
	effects := m.drawEffects(number(m.rt, "effects", 1, 4))
	if number(m.rt, "invalid", 0, 5) == 0 {
		spoiled := append(m.drawEffects(1), m.spoil(effects[0]))
		m.refuses("enqueue many", func() error { _, err := m.box.EnqueueMany(m.ctx, tx.Tx, spoiled); return err }) // one refuses all
	}
	receipts, err := m.box.EnqueueMany(m.ctx, tx.Tx, effects)
	stored := m.check("enqueue many", nil, effects, receipts, err)
	if tx.exec != nil && rapid.Bool().Draw(m.rt, "savepoint") {
		more := m.drawEffects(number(m.rt, "effects", 1, 4))
		m.must(tx.exec("SAVEPOINT before"))
		receipts, err := m.box.EnqueueMany(m.ctx, tx.Tx, more)
		m.note(tx, m.check("enqueue many", stored, more, receipts, err))
		m.must(tx.exec("ROLLBACK TO SAVEPOINT before"))
		m.count("enqueue many", savepoint)
	}
	m.finish("enqueue many", tx, stored)
}

func (m *machine) drawEffects(n int) []outbox.Effect {
	effects := make([]outbox.Effect, n)
	for i := range effects {
		effects[i] = m.drawEffect(m.taken())
	}
	return effects
}

// lateTransaction opens a transaction that enqueues, or ends the one that is open.
func (m *machine) lateTransaction() {
	if m.open != nil {
		m.finish("late transaction", m.open.tx, m.open.written)
		m.open = nil
		return
	}
	tx, effects := m.stage.begin(m.t), m.drawEffects(2)
	receipts, err := m.box.EnqueueMany(m.ctx, tx.Tx, effects)
	m.open = &late{tx, m.check("late transaction", nil, effects, receipts, err)}
	if m.stage.oneFile {
		m.lateTransaction() // while it is open nobody else can write
	}
}

// finish commits or rolls back. The business rows that the producer writes beside say which messages must be there (I1).
func (m *machine) finish(action string, tx caller, stored []written) {
	m.note(tx, stored)
	if number(m.rt, "rollback", 0, 5) == 0 {
		m.must(tx.rollback())
		m.count(action, "rolled back")
		return
	}
	m.must(tx.commit())
	m.count(action, "committed")
	for _, w := range stored {
		e := w.effect
		age := micros(e.MaxAge)
		switch e.MaxAge {
		case 0:
			age = micros(24 * time.Hour) // the box's
		case outbox.NoMaxAge:
			age = 0
		}
		m.model.commit(&envelope{
			id: w.id, lane: lane{e.Consumer, e.Target, e.Kind, e.Tenant, e.Priority}, key: e.Key, order: e.OrderKey,
			content: content(e), maxAge: age, created: w.created,
		}, w.due)
		if w.held != nil {
			m.model.grant(m.model.find(w.id), *w.held)
		}
		m.effects[w.id], m.recorded[w.id], m.fresh[w.id] = e, true, w.at
	}
}

func (m *machine) note(tx caller, stored []written) {
	for _, w := range stored {
		if tx.exec != nil {
			m.must(tx.exec("INSERT INTO business VALUES ($1)", w.id))
		}
	}
}

// check holds the receipts of one call against what stands under the keys, before is what the transaction wrote earlier, and gives what it
// has written now (I20).
func (m *machine) check(action string, before []written, effects []outbox.Effect, receipts outbox.Receipts, err error) []written {
	if len(receipts) != len(effects) {
		m.rt.Fatalf("%d receipts for %d effects: %v", len(receipts), len(effects), err)
	}
	var conflicts []outbox.Conflict
	all, last := before, int64(0)
	h := m.handing
	if h == nil {
		h = &handing{}
	}
	held := m.leasing(h.client, h.scope, h.worker, h.length)
	room, born := h.room, 0
	for i, e := range effects {
		id, state, same := m.standing(all, e)
		got := receipts[i]
		taken := room > 0 && h.takes(e) // room is kept until the statement is answered
		room -= int(bit(taken))
		status := outbox.Recorded
		switch {
		case id == 0:
			if got.ID <= last {
				m.rt.Fatalf("receipt %d: id %d does not rise", i, got.ID)
			}
			id, state, last = got.ID, outbox.StatePending, got.ID
			created := m.model.now
			due := max(created+micros(e.Delay), m.virtual(e.DueAt))
			all = append(all, written{id, e, created, due, m.seen.now, nil})
			if taken && m.model.pausedAt(lane{e.Consumer, e.Target, e.Kind, e.Tenant, e.Priority}) < 0 {
				all[len(all)-1].held = &held
				born++
			}
		case same:
			status = outbox.Duplicate
		default:
			status = outbox.Conflicted
			conflicts = append(conflicts, outbox.Conflict{Index: i, Tenant: e.Tenant, Consumer: e.Consumer, Key: e.Key, ID: id, State: state})
		}
		equal(m, "receipt's id", got.ID, id)
		equal(m, "receipt's status", got.Status, status)
		equal(m, "receipt's state", got.State, state)
		m.count(action, string(status))
	}
	h.room -= born
	var conflict *outbox.KeyConflictError
	if errors.As(err, &conflict) {
		equalAll(m, "conflicts", conflict.Conflicts, conflicts)
		return all
	}
	m.must(err)
	equal(m, "number of conflicts", 0, len(conflicts))
	return all
}

// standing is what a transaction sees under an effect's key: what it wrote itself, and what is committed.
func (m *machine) standing(own []written, e outbox.Effect) (id int64, state outbox.State, same bool) {
	for _, w := range own {
		if identityOf(w.effect) == identityOf(e) {
			state = outbox.StatePending
			if w.held != nil {
				state = outbox.StateLeased
			}
			return w.id, state, content(w.effect) == content(e)
		}
	}
	for i := range m.model.rows {
		if r := &m.model.rows[i]; (identity{r.tenant, r.consumer, r.key}) == identityOf(e) {
			return r.id, outbox.State(r.word(m.model.now)), r.content == content(e)
		}
	}
	return 0, "", false
}

// spoil makes an effect invalid in one of many ways.
func (m *machine) spoil(e outbox.Effect) outbox.Effect {
	ways := map[string]func(){
		"blank key":         func() { e.Key = " \t" },
		"long key":          func() { e.Key = strings.Repeat("k", 256) },
		"wildcard":          func() { e.Kind = outbox.Any },
		"blank tenant":      func() { e.Tenant = " " },
		"no consumer":       func() { e.Consumer = "" },
		"NUL":               func() { e.Target = "a\x00b" },
		"no UTF-8":          func() { e.OrderKey = "a\xffb" },
		"large payload":     func() { e.Payload = make([]byte, outbox.DefaultMaxPayload+1) },
		"reserved metadata": func() { e.Metadata = map[string]string{"traceparent": "x"} },
		"negative age":      func() { e.MaxAge = -1 },
		"negative delay":    func() { e.Delay = -1 },
		"two due times":     func() { e.Delay, e.DueAt = unit, m.seen.now },
		"year 10000":        func() { e.Delay, e.DueAt = 0, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	}
	ways[m.drawName("way", ways)]()
	return e
}
