package property_test

import "slices"

// What the search's policy says. Times are units of its clock: long enough that each order of the instants comes up.
const (
	leaseUnits  = 2
	delayUnits  = 1
	ageUnits    = 3
	graceUnits  = 1
	keepUnits   = 1
	maxAttempts = 2
)

// A universe is what does not change in a search.
type universe struct {
	variant
	envelopes [2]envelope
	settler   settler
	kinds     []string
}

func newUniverse(v variant) *universe {
	u := &universe{variant: v, kinds: []string{"a", "b"}}
	for i := range u.envelopes {
		// A kind each, so that a lease can name one of them.
		u.envelopes[i] = envelope{
			id: int64(i + 1), lane: lane{consumer: "c", target: "t", kind: u.kinds[i]}, order: v.order[i], maxAge: ageUnits,
		}
	}
	u.settler = settler{
		consumer: "c", target: "t", scope: scope{all: true}, rule: rule{attempts: maxAttempts, acceptLate: v.late, blockOnDead: v.block},
	}
	return u
}

// A world is one state of the search: the model and what the two workers know. Its slices lie in its arrays, so that a step allocates next
// to nothing.
type world struct {
	*universe
	model
	gone [2]bool // rolled back or purged: the message never comes back
	// hands are the epochs of the last leases that the workers heard of, by worker and message; 0 = of none. Here the token of a lease is its
	// epoch: the pair with the message is as unique as a random one (I4, which check sees to), and no two states differ by tokens alone.
	hands [2][2]int64

	rowArray   [2]row
	holdArray  [2]hold
	pauseArray [1]pause
}

func newWorld(u *universe) *world {
	w := &world{universe: u}
	w.rows, w.holds, w.pauses = w.rowArray[:0], w.holdArray[:0], w.pauseArray[:0]
	return w
}

func (w *world) copy(from *world) {
	w.now, w.gone, w.hands = from.now, from.gone, from.hands
	w.rows = append(w.rowArray[:0], from.rows...)
	w.holds = append(w.holdArray[:0], from.holds...)
	w.pauses = append(w.pauseArray[:0], from.pauses...)
}

// A code is a state in little space, equal for states from which the same things can happen. So the search ends, although no clock, epoch
// or count of replays does:
//
//   - instants are relative to now, and all that came due, is over, or is old enough are the same;
//   - of epochs it keeps whether there was a lease, and of a handle whether it is that of the row (2), of an earlier lease (1), or none;
//   - attempts beyond the policy's count from there, since only how many are left matters;
//   - which worker is which does not matter.
type code struct{ messages, rest uint64 }

// A bits packs fields one after the other.
type bits struct {
	word uint64
	used uint
}

func (b *bits) put(value int64, width uint) {
	if uint64(value) >= 1<<width {
		panic("a field of the search's state does not fit")
	}
	b.word |= uint64(value) << b.used
	b.used += width
}

func (b *bits) get(width uint) int64 {
	value := b.word >> b.used & (1<<width - 1)
	b.used += width
	return int64(value)
}

// code is the same for two worlds that differ only in which worker is which.
func (w *world) code() code {
	one, other := w.codeWith(0), w.codeWith(1)
	if other.messages < one.messages || other.messages == one.messages && other.rest < one.rest {
		return other
	}
	return one
}

// codeWith encodes with the given worker as the first.
func (w *world) codeWith(first int) code {
	var messages, rest bits
	for i := range w.envelopes {
		r := w.find(int64(i + 1))
		w.putMessage(&messages, i, r, first)
		for n := range w.hands {
			rest.put(age(w.hands[(n+first)%2][i], r), 2)
		}
	}
	var h hold
	if len(w.holds) > 0 {
		h = w.holds[0]
	}
	rest.put(h.id, 2)
	rest.put(bit(h.blocked), 1)
	rest.put(w.ahead(h.until, 0, leaseUnits), 2)
	rest.put(int64(len(w.pauses)), 1)
	return code{messages.word, rest.word}
}

// age is what the code keeps of a handle.
func age(epoch int64, r *row) int64 {
	switch {
	case epoch == 0 || r == nil:
		return 0
	case r.held() && epoch == r.epoch:
		return 2
	default:
		return 1
	}
}

// Places of a message beside its states.
const (
	uncommitted = 6
	gone        = 7
)

func (w *world) putMessage(b *bits, i int, r *row, first int) {
	if r == nil {
		b.put(uncommitted+bit(w.gone[i]), 3)
		return
	}
	b.put(int64(r.state), 3)
	b.put(bit(r.epoch > 0), 1)
	beyond := max(r.attempt-maxAttempts-1, 0)
	b.put(int64(r.attempt-beyond), 2)
	if !r.state.open() {
		b.put(-w.ahead(r.settled, -keepUnits-1, 0), 2)
		b.put(bit(r.cause == "age" || r.cause == "exhausted"), 1) // a replay leaves it unsure
		return
	}
	b.put(int64(max(r.limit-beyond, maxAttempts)-maxAttempts), 2) // a lower one does not count
	b.put(bit(r.unsure), 1)
	b.put(bit(r.held()), 1)
	worker := r.worker
	if worker > 0 && first == 1 {
		worker = 3 - worker
	}
	b.put(worker, 2)
	b.put(w.ahead(r.due, 0, delayUnits), 2)
	b.put(w.ahead(r.until, 0, leaseUnits), 2)
	b.put(w.ahead(r.expires, -graceUnits, ageUnits)+graceUnits, 3)
}

// ahead is an instant relative to now, drawn into the range where it matters.
func (w *world) ahead(at instant, least, most int64) int64 {
	return max(min(int64(at-w.now), most), least)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (w *world) decode(c code) {
	w.now = 0
	w.rows, w.holds, w.pauses = w.rowArray[:0], w.holdArray[:0], w.pauseArray[:0]
	messages, rest := bits{word: c.messages}, bits{word: c.rest}
	for i := range w.envelopes {
		w.getMessage(&messages, i)
		for n := range w.hands {
			w.hands[n][i] = rest.get(2)
		}
	}
	id, blocked, until := rest.get(2), rest.get(1) == 1, instant(rest.get(2))
	if id > 0 {
		if blocked {
			until = never
		}
		w.holds = append(w.holds, hold{orderKey: w.envelopes[id-1].orderKey(), id: id, until: until, blocked: blocked})
	}
	if rest.get(1) == 1 {
		w.pauses = append(w.pauses, everything)
	}
}

// everything is the pause that stops all lanes.
var everything = pause{consumer: "*", target: "*", kind: "*", tenant: "*"}

func (w *world) getMessage(b *bits, i int) {
	place := b.get(3)
	w.gone[i] = place == gone
	if place >= uncommitted {
		return
	}
	r := row{envelope: &w.envelopes[i], state: state(place), until: never, epoch: 2 * b.get(1), attempt: int(b.get(2))}
	if !r.state.open() {
		r.settled = -instant(b.get(2))
		if b.get(1) == 1 {
			r.cause = "exhausted"
		}
		w.rows = append(w.rows, r)
		return
	}
	r.limit = maxAttempts + int(b.get(2))
	r.unsure = b.get(1) == 1
	held := b.get(1) == 1
	r.worker, r.due = b.get(2), instant(b.get(2))
	until := instant(b.get(2))
	if held {
		r.token, r.until = r.epoch, until
	}
	r.expires = instant(b.get(3)) - graceUnits
	w.rows = append(w.rows, r)
}

// live are the messages that somebody may be performing.
func (w *world) live(order string) int {
	n := 0
	for i := range w.rows {
		if r := &w.rows[i]; r.order == order && r.held() && r.until > w.now {
			n++
		}
	}
	return n
}

// row is a message, or one without an envelope when it is not there.
func (w *world) row(message int) row {
	if r := w.find(int64(message + 1)); r != nil {
		return *r
	}
	return row{}
}

// same says whether nothing about the messages differs.
func (w *world) same(o *world) bool {
	return slices.Equal(w.rows, o.rows) && slices.Equal(w.holds, o.holds)
}
