package property_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
	"github.com/fencepost-go/fencepost/outbox"
)

// TestMachine runs random operations on a box and on the model side by side. After each step it compares the answers, and then every row of
// every table (sync). One source serves memory, pgx, lib/pq and SQLite, so what holds on one holds on all (I31).
//
// A run of `make property` is at least 5,000 steps a driver and goes on, within reason, until everything that the model's table foresees has
// happened; it ends with what was called and what that came to. The flags of rapid and their variables set the size: unset, as in `make test`,
// a run is brief, some 1,200 steps a driver; RAPID_CHECKS=3400 is about 200,000, after which everything must have happened twenty times.
func TestMachine(t *testing.T) {
	t.Parallel()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			within, tally := d.open(t), newTally(d.savepoints)
			for tally.wantsMore() {
				rapid.Check(t, func(rt *rapid.T) {
					within(rt, func(rt *rapid.T, s *stage) {
						m := newMachine(t, rt, s, tally)
						defer m.close()
						rt.Repeat(m.actions())
					})
				})
			}
			tally.report(t)
		})
	}
}

// unit is the grid of all lengths of time in the machine. What passes by itself between two steps is far shorter, and so can not decide
// whether something is due, over or too old.
const unit = 10 * time.Minute

func micros(d time.Duration) instant { return instant(d / time.Microsecond) }

// A machine is one check: a box on an empty store, and the model beside it.
type machine struct {
	t     *testing.T
	rt    *rapid.T // of the action under way
	ctx   context.Context
	stage *stage
	tally *tally
	box   *outbox.Box
	model model

	clients []client
	workers []worker
	hands   []hand   // the leases that workers believe to have, and some that they had
	said    []said   // what they settled
	open    *late    // a producer's transaction that takes its time
	handing *handing // of the enqueue under way

	effects  map[int64]outbox.Effect // by message
	recorded map[int64]bool          // every message that was ever committed (I1)
	tokens   map[int64][]byte        // by the number of the lease call
	leases   int64                   // lease calls so far
	acts     []act                   // what operators did in this step
	claims   map[int64]time.Time     // until when leases run, as this step's answers say
	fresh    map[int64]time.Time     // when the messages committed in this step were written
	removed  int                     // messages purged, or not kept
	renewing bool                    // this step may write a row as it was
	aged     bool                    // this step wrote every row
	stepped  bool                    // the clock went back once
	seen     seen
}

// A worker is who holds leases, with its record.
type worker struct {
	id   int64
	name string
	at   instant // last seen
}

// A hand is a message as a worker got it, with the number of the lease call in place of the token, which nobody can see.
type hand struct {
	outbox.Message
	call int64
}

func (h hand) handle() handle { return handle{h.ID, h.call} }

// An act is an audit row to be.
type act struct {
	action        string
	message       int64
	tenant        string
	actor, reason string
}

// seen is how the store looked after the step before.
type seen struct {
	now      time.Time
	rows     []row
	messages map[int64]tables.Message
	audits   int
	versions map[int64]string
}

func newMachine(t *testing.T, rt *rapid.T, s *stage, tally *tally) *machine {
	box, err := outbox.New(s.store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{
		t: t, rt: rt, ctx: context.WithoutCancel(t.Context()), stage: s, tally: tally, box: box,
		effects: map[int64]outbox.Effect{}, recorded: map[int64]bool{}, tokens: map[int64][]byte{},
		claims: map[int64]time.Time{}, fresh: map[int64]time.Time{},
	}
	m.seen = seen{now: s.dump(t).Now, messages: map[int64]tables.Message{}}
	for _, place := range places {
		m.clients = append(m.clients, drawClient(rt, box, place))
	}
	for _, name := range workerNames {
		id, err := box.RegisterWorker(m.ctx, name, "host")
		m.must(err)
		m.workers = append(m.workers, worker{id: id, name: name, at: m.model.now})
	}
	m.sync()
	tx, effects := s.begin(t), m.drawEffects(number(rt, "effects at the start", 0, 12))
	receipts, err := box.EnqueueMany(m.ctx, tx.Tx, effects)
	m.finish("enqueue many", tx, m.check("enqueue many", nil, effects, receipts, err))
	return m
}

// close ends a transaction that is still open, so that the stage can be emptied.
func (m *machine) close() {
	if m.open != nil {
		_ = m.open.tx.rollback()
	}
}

// count notes what an operation came to.
func (m *machine) count(action, result string) { m.tally.count(action, result) }

// either is the word for what an operation came to.
func either(yes bool, word, otherwise string) string {
	if yes {
		return word
	}
	return otherwise
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.rt.Fatalf("unexpected error: %v", err)
	}
}

// equal fails the check when an answer is not the model's.
func equal[T comparable](m *machine, what string, got, want T) {
	m.t.Helper()
	if got != want {
		m.rt.Fatalf("%s: the store says %v, the model %v", what, got, want)
	}
}

func equalAll[T comparable](m *machine, what string, got, want []T) {
	m.t.Helper()
	if !slices.Equal(got, want) {
		m.rt.Fatalf("%s: the store says %v, the model %v", what, got, want)
	}
}

// virtual is an instant of the store on the model's clock.
func (m *machine) virtual(at time.Time) instant {
	switch {
	case at.IsZero() || at.Equal(db.Never):
		return never
	case !at.Before(tables.Forever):
		return forever
	}
	return m.model.now + instant(at.Sub(m.seen.now)/time.Microsecond)
}

// actual is an instant of the model on the store's clock.
func (m *machine) actual(at instant) time.Time {
	return m.seen.now.Add(time.Duration(at-m.model.now) * time.Microsecond)
}

// numberOf is the lease call that drew a token. A token seen for the first time must belong to the call that the model says, and no call
// draws one twice (I4).
func (m *machine) numberOf(token []byte, call int64) int64 {
	if bytes.Equal(token, db.FreeToken) {
		return 0
	}
	for number, known := range m.tokens {
		if bytes.Equal(known, token) {
			return number
		}
	}
	if m.tokens[call] != nil {
		return -1
	}
	m.tokens[call] = token
	return call
}
