package sender

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

const (
	maxDueLanes = 100_000     // what one scan lists
	rescanEvery = time.Second // while there is something to lease
	rescanShare = 10          // a scan comes no sooner than so many times what the quicker of the last two took
)

// A schedule decides which lanes to lease from, in which order and how much of each, and when to look for lanes that have due messages (a
// scan). It does no I/O and reads no clock. Its instants are the sender's own and measure intervals only; marks are the database's.
//
// A scan puts every lane back to its front, its earliest message, and passes go on from their marks. What lies below a mark (a late commit, a
// lease that ran out or was given back, a row that was locked) is found by the next scan. That follows as soon as the passes came back short, a
// second after the last one otherwise, and after a poll when nothing is due; but scans take no more than about a tenth of the time, however many
// dead entries they walk over. A single slow one, which waited for a lock or a connection, says nothing of the next, and the first one, which
// also connects, nothing at all.
//
// What is committed mostly belongs to a lane that had something lately. So a wake-up is followed by a pass over such lanes, from a little before
// their marks, without a scan; the scan that follows finds what that missed.
type schedule struct {
	poll   time.Duration
	leases map[string]time.Duration // by kind

	lanes map[outbox.Lane]*lane // of the last scan
	ring  []*tenant             // theirs, by name
	first string                // whose turn is next, or the next tenant's after it
	open  int                   // lanes that are not drained
	count int                   // of passes

	troubles map[outbox.Lane]*trouble
	taken    map[outbox.Lane]int // messages taken and not let go

	began, ended time.Time     // of the last scan
	took, before time.Duration // it and the first pass after it, and the same of the scan before it
	fresh        bool          // it found something, and there was no pass since then
	fruitful     bool          // a pass since then leased or buried something
	woken        bool          // something was committed since it began
	unseen       bool          // something was committed since the last pass began

	lately []*lane // of which a pass got something, the last one first
	eager  bool    // some of these are to be passed over for a commit
	peeked bool    // that was done since the last scan
}

// A tenant takes turns with the others.
type tenant struct {
	name  string
	lanes []*lane // that are not drained
	turns int
}

// A lane is one that had a due message at the last scan.
type lane struct {
	outbox.Lane
	since   time.Time // its earliest message came due
	mark    outbox.Mark
	served  int  // the last pass that got something of it
	drained bool // until the next scan

	reopened bool // after it was drained
	misses   int  // passes in a row that got nothing of it
}

func newSchedule(poll time.Duration, leases map[string]time.Duration) *schedule {
	return &schedule{
		poll:     poll,
		leases:   leases,
		troubles: map[outbox.Lane]*trouble{},
		taken:    map[outbox.Lane]int{},
	}
}

// wake says that something was committed.
func (s *schedule) wake() {
	s.woken, s.unseen = true, true
	s.reopenLately()
}

// reopenLately lets the next pass come back to the lanes that had something lately.
func (s *schedule) reopenLately() {
	for _, l := range s.lately {
		if l.drained {
			s.reopen(l)
			s.eager = true
		}
	}
}

// hurries says whether a pass over lanes that had something lately comes before a scan that is due. Only one does.
func (s *schedule) hurries() bool { return s.eager && !s.peeked }

// hasCommitsAlone says whether all there is to lease is what was committed after its lane was drained.
func (s *schedule) hasCommitsAlone() bool {
	reopened := 0
	for _, l := range s.lately {
		if l.reopened {
			reopened++
		}
	}
	return reopened > 0 && reopened == s.open
}

// scanAt is when the next scan is due.
func (s *schedule) scanAt() time.Time {
	if s.began.IsZero() {
		return time.Time{}
	}
	at := s.began.Add(s.poll)
	switch {
	case s.woken, s.fruitful && !s.leasable():
		at = s.ended
	case s.leasable():
		at = s.began.Add(rescanEvery)
	}
	if earliest := s.ended.Add(rescanShare * min(s.took, s.before)); at.Before(earliest) {
		return earliest
	}
	return at
}

// scan says that a scan begins: one that begins later than what it returns serves. What is committed after its begin it may miss.
func (s *schedule) scan(now time.Time) (since time.Time, woken bool) {
	since, woken = s.began, s.woken
	if woken {
		since = now
	}
	s.woken = false
	return since, woken
}

// scanned takes in what a scan found.
func (s *schedule) scanned(due []outbox.DueLane, began, ended time.Time) {
	s.began, s.ended, s.took, s.before = began, ended, ended.Sub(began), s.took
	s.fresh, s.fruitful, s.peeked = len(due) > 0, false, false
	known, tenants := s.lanes, s.ring
	s.lanes, s.ring, s.open = make(map[outbox.Lane]*lane, len(due)), nil, len(due)
	slices.SortFunc(due, func(a, b outbox.DueLane) int { return strings.Compare(a.Tenant, b.Tenant) })
	for _, d := range due {
		l := &lane{Lane: d.Lane, since: d.Since, mark: outbox.Mark{Due: d.Since}} // what is dead before it was walked over once
		if before, ok := known[d.Lane]; ok {
			l.served = before.served
		}
		s.lanes[d.Lane] = l
		if n := len(s.ring); n == 0 || s.ring[n-1].name != d.Tenant {
			s.ring = append(s.ring, &tenant{name: d.Tenant, turns: turnsOf(tenants, d.Tenant)})
		}
		t := s.ring[len(s.ring)-1]
		t.lanes = append(t.lanes, l)
	}
	for i, l := range s.lately {
		if found := s.lanes[l.Lane]; found != nil {
			s.lately[i] = found
			continue
		}
		l.drained, l.reopened = true, false
		s.lanes[l.Lane] = l
	}
	s.eager = false
	if s.woken { // while it ran
		s.reopenLately()
	}
	s.forgetTroubles(ended)
}

func turnsOf(ring []*tenant, name string) int {
	at, found := slices.BinarySearchFunc(ring, name, compareTenant)
	if !found {
		return 0
	}
	return ring[at].turns
}

func compareTenant(t *tenant, name string) int { return cmp.Compare(t.name, name) }

// leasable says whether a lane may have due messages above its mark and is not held back.
func (s *schedule) leasable() bool {
	open := s.open
	for name := range s.troubles {
		if l, ok := s.lanes[name]; ok && !l.drained {
			open--
		}
	}
	return open > 0
}

// exhausted says whether nothing was due at the last scan that has not been leased.
func (s *schedule) exhausted() bool {
	return !s.began.IsZero() && !s.woken && !s.fruitful && !s.leasable()
}
