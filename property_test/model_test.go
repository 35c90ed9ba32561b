package property_test

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The model is what the outbox must do, in plain Go: one goroutine, no database, one call an operation. It is written from the invariants and
// the design and shares nothing with the statements, the drivers or memdb. Two tests stand on it: the machine runs it beside a store and
// compares every result and every row, the search walks all its states.

// An instant is microseconds on the model's clock, which stands still unless a test moves it.
type instant int64

const (
	never        instant = math.MinInt64 / 4
	forever      instant = math.MaxInt64 / 4
	longestLease         = instant(time.Hour / time.Microsecond)
)

// A state is where a message stands. A leased message is a pending one with a token and a lease that is not over.
type state int8

const (
	pending state = iota
	parked
	delivered
	dead
	cancelled
	expired
)

func (s state) String() string {
	return [...]string{"pending", "parked", "delivered", "dead", "cancelled", "expired"}[s]
}

func (s state) open() bool { return s <= parked }

// A lane is the unit of fairness and of pausing.
type lane struct {
	consumer, target, kind, tenant string
	priority                       int16
}

type orderKey struct{ consumer, target, tenant, order string }

// An envelope is what the producer wrote. Nothing changes it (I17).
type envelope struct {
	id int64
	lane
	key, order string
	content    string // what makes two effects of one key the same
	maxAge     instant
	created    instant
}

func (e *envelope) orderKey() orderKey { return orderKey{e.consumer, e.target, e.tenant, e.order} }

// A row is a message with all that changes about it. Two rows with equal fields are the same: a row that an operation must leave alone
// compares equal before and after.
type row struct {
	*envelope
	state                   state
	epoch                   int64
	token                   int64 // the number of the lease call that granted it, 0 when nobody holds it
	worker                  int64 // who holds it
	attempt, limit, replays int
	unsure                  bool
	due, born, expires      instant // of an open message
	until                   instant // of a held one, else never
	replayed                instant
	lastError               string  // of an open message
	settled                 instant // and what follows: of a settled one
	settledBy               int64
	cause, reason, result   string
}

// A hold is what keeps an order key to one message: a lease, or a dead message that blocks the key.
type hold struct {
	orderKey
	id      int64
	until   instant
	blocked bool
}

// A pause stops the lanes it names; "*" names all.
type pause struct {
	consumer, target, kind, tenant string
	mode                           int
	actor, reason                  string
	at                             instant
}

// A model is the whole outbox.
type model struct {
	now    instant
	rows   []row // committed, by id
	holds  []hold
	pauses []pause
}

// A scope says whose messages a call may touch (I22).
type scope struct {
	all     bool
	tenants []string
}

func (s scope) has(tenant string) bool { return s.all || slices.Contains(s.tenants, tenant) }

// A rule is what a consumer's policy says about leasing and settling.
type rule struct {
	attempts    int
	maxAge      map[string]instant // by kind; 0 = none
	acceptLate  bool
	blockOnDead bool
	drop        bool
}

func (m *model) find(id int64) *row {
	for i := range m.rows {
		if m.rows[i].id == id {
			return &m.rows[i]
		}
	}
	return nil
}

// within is find for a caller with a scope: what it may not see is not there (I22).
func (m *model) within(s scope, id int64) *row {
	if r := m.find(id); r != nil && s.has(r.tenant) {
		return r
	}
	return nil
}

func (m *model) erase(id int64) {
	m.rows = slices.DeleteFunc(m.rows, func(r row) bool { return r.id == id })
}

// commit makes an enqueued message visible. Its age counts from when it is first due.
func (m *model) commit(e *envelope, due instant) {
	r := row{envelope: e, due: due, until: never, replayed: never}
	r.restart(due)
	at, _ := slices.BinarySearchFunc(m.rows, e.id, func(r row, id int64) int { return cmp.Compare(r.id, id) })
	m.rows = slices.Insert(m.rows, at, r)
}

// restart lets the age of a message start anew.
func (r *row) restart(born instant) {
	r.born, r.expires = born, forever
	if r.maxAge > 0 {
		r.expires = born + r.maxAge
	}
}

func (r *row) held() bool { return r.token != 0 }

// live says whether a lease runs. One that ends further ahead than any lease may is over: the clock was set back (I15).
func live(until, now instant) bool { return until > now && until <= now+longestLease }

// word is what the API calls the state.
func (r *row) word(now instant) string {
	if r.state == pending && r.held() && r.until > now {
		return "leased"
	}
	return r.state.String()
}

// tooOld applies the shorter of the message's own age and its consumer's (I14).
func (r *row) tooOld(now, maxAge instant) bool {
	return r.expires <= now || maxAge > 0 && r.born+maxAge <= now
}

// spent says whether the leases are used up (I11). A replay that keeps the attempts raises the row's own limit.
func (r *row) spent(attempts int) bool { return r.attempt >= max(attempts, r.limit) }

// letGo ends a lease without a settlement.
func (r *row) letGo() { r.token, r.worker, r.until = 0, 0, never }

// head is the message of an order key that runs next: the first open one, whatever holds it back (I21).
func (m *model) head(key orderKey) int64 {
	for i := range m.rows {
		if r := &m.rows[i]; r.state.open() && r.order != "" && r.orderKey() == key {
			return r.id
		}
	}
	return 0
}

// holdOf is what holds an order key, nil for nothing.
func (m *model) holdOf(key orderKey) *hold {
	for i := range m.holds {
		if m.holds[i].orderKey == key {
			return &m.holds[i]
		}
	}
	return nil
}

// take gives the order key to a message, or to one that dies and blocks it, unless another has it or a dead one blocks it already (I21).
func (m *model) take(r *row, until instant, blocked bool) bool {
	if r.order == "" {
		return true
	}
	h := m.holdOf(r.orderKey())
	if h == nil {
		m.holds = append(m.holds, hold{})
		h = &m.holds[len(m.holds)-1]
	} else if h.blocked || live(h.until, m.now) {
		return false
	}
	*h = hold{orderKey: r.orderKey(), id: r.id, until: until, blocked: blocked}
	return true
}

// free lets the key of a message go that its lease holds, or that it blocks.
func (m *model) free(id int64, blocked bool) {
	m.holds = slices.DeleteFunc(m.holds, func(h hold) bool { return h.id == id && h.blocked == blocked })
}

// die ends a message that will not run again. Under BlockOnDead it keeps its order key, unless another runs under that or blocks it: taking
// the key from one that runs would let a third run beside it, once the key is unblocked (I21).
func (m *model) die(r *row, cause, reason string, by int64, block bool) {
	m.end(r, dead, by)
	r.cause, r.reason = cause, reason
	if block {
		m.take(r, never, true)
	}
}

// end writes the terminal record: the counts stay, what belongs to an open message goes.
func (m *model) end(r *row, s state, by int64) {
	m.free(r.id, false)
	*r = row{
		envelope: r.envelope, state: s, epoch: r.epoch, attempt: r.attempt, replays: r.replays, replayed: r.replayed,
		until: never, settled: m.now, settledBy: by,
	}
}

// pausedAt is the strongest pause of a lane, -1 for none.
func (m *model) pausedAt(l lane) int {
	mode := -1
	for _, p := range m.pauses {
		if named(p.consumer, l.consumer) && named(p.target, l.target) && named(p.kind, l.kind) && named(p.tenant, l.tenant) {
			mode = max(mode, p.mode)
		}
	}
	return mode
}

func named(name, of string) bool { return name == "*" || name == of }
