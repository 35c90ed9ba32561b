package sender

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

const (
	maxLanes    = 1_000 // of one pass
	minLanes    = 16    // offered to a pass however little it may lease
	leastTurn   = 4     // messages of a turn, however many tenants there are: to go to a lane costs more than to lease a message
	patientTurn = 8     // one turn in so many is the one of the lane that has waited longest

	mostLately = 16                     // lanes passed over for a commit
	mostMisses = 8                      // and for so many that were other lanes'
	overlap    = 100 * time.Millisecond // before their marks: for as long transactions are found at once that commit behind later ones
)

// A plan is one pass to be made.
type plan struct {
	lanes        []*lane // in the order to serve them
	tenants      int     // the first so many are each another tenant's first choice; none for a probe
	passedOver   *tenant // the first one whose choice has another length of lease, nil for none
	before       int     // so many of the tenants come before it
	lease        time.Duration
	quota, limit int
}

// plan gives the next pass, with room for so many messages.
//
// Tenants are served round robin: the pass starts with the tenant whose turn it is, and its room is shared evenly among the first lanes of
// all, with a few messages at least for each as far as it reaches; their second lanes get what the first ones leave. Within a tenant the
// highest priority is first, and of one priority the lane that has waited longest; but one turn in eight goes to the lane that has waited
// longest of all, so that the lowest priority still moves. Lanes of kinds whose leases differ in length take different passes: a tenant whose
// first choice has another length than that of the tenant whose turn it is waits for the next pass.
func (s *schedule) plan(now time.Time, room int) (plan, bool) {
	if p, ok := s.probe(now, room); ok {
		s.unseen = false
		return p, true
	}
	if !s.leasable() {
		return plan{}, false
	}
	p := plan{limit: room}
	most := min(maxLanes, max(minLanes, room))
	var turns [][]*lane
	for t := range s.inTurn() {
		lanes := slices.DeleteFunc(t.turn(), func(l *lane) bool { return s.troubles[l.Lane] != nil })
		if len(lanes) == 0 {
			continue
		}
		if p.lease == 0 {
			p.lease = s.leases[lanes[0].Kind]
		}
		if s.leases[lanes[0].Kind] != p.lease {
			if p.passedOver == nil {
				p.passedOver, p.before = t, len(turns)
			}
			continue
		}
		turns = append(turns, slices.DeleteFunc(lanes, func(l *lane) bool { return s.leases[l.Kind] != p.lease }))
		if len(turns) == most {
			break
		}
	}
	p.tenants = len(turns)
	for choice, more := 0, true; more && len(p.lanes) < most; choice++ {
		more = false
		for _, lanes := range turns {
			if choice < len(lanes) && len(p.lanes) < most {
				p.lanes, more = append(p.lanes, lanes[choice]), true
			}
		}
	}
	if p.tenants == 0 {
		return plan{}, false
	}
	s.unseen = false
	p.quota = max((room+p.tenants-1)/p.tenants, min(leastTurn, room))
	return p, true
}

// inTurn yields the tenants from the one whose turn it is.
func (s *schedule) inTurn() iter.Seq[*tenant] {
	at, _ := slices.BinarySearchFunc(s.ring, s.first, compareTenant)
	return func(yield func(*tenant) bool) {
		for i := range s.ring {
			if !yield(s.ring[(at+i)%len(s.ring)]) {
				return
			}
		}
	}
}

// turn gives the lanes of a tenant in the order of its next turn.
func (t *tenant) turn() []*lane {
	patient := t.turns%patientTurn == patientTurn-1
	return slices.SortedFunc(slices.Values(t.lanes), func(a, b *lane) int {
		if byPriority := cmp.Compare(b.Priority, a.Priority); byPriority != 0 && !patient {
			return byPriority
		}
		return cmp.Or(cmp.Compare(a.served, b.served), a.since.Compare(b.since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Priority, a.Priority))
	})
}

// passed takes in how far a pass came and how many messages it moved, by leasing or burying them. It says whether that completes a rescan:
// the first pass after a scan, which starts at the front of its lanes, counts as part of it.
func (s *schedule) passed(p plan, progress []outbox.LaneProgress, moved int, took time.Duration, ended time.Time) (rescanned bool) {
	s.count++
	if rescanned = s.fresh; rescanned {
		s.fresh, s.ended, s.took = false, ended, s.took+took
	}
	s.fruitful = s.fruitful || moved > 0
	s.peeked, s.eager = s.peeked || s.eager, false
	last := -1
	for i, l := range p.lanes {
		at := progress[i]
		l.mark, l.reopened = at.Examined, false
		switch {
		case at.Picked > 0:
			l.served, l.misses = s.count, 0
			s.remember(l)
		case at.Reached:
			if l.misses++; l.misses == mostMisses {
				s.forget(l)
			}
		}
		if at.Reached {
			last = i
			if i < p.tenants {
				s.tenantOf(l).turns++
			}
		}
		if at.Drained {
			s.drain(l)
		}
	}
	if last >= 0 && p.tenants > 0 {
		s.passTurn(p, last, progress[last].Picked)
	}
	if s.unseen { // by the pass, perhaps
		s.reopenLately()
	}
	return rescanned
}

// passTurn hands the next turn to the tenant after the last one that had its share. One that was cut short by the room goes first, and so does
// one that was passed over.
func (s *schedule) passTurn(p plan, last, picked int) {
	switch s.first = p.lanes[last].Tenant; {
	case p.passedOver != nil && last >= p.before:
		s.first = p.passedOver.name
	case picked >= p.quota, last >= p.tenants:
		s.first += "\x00" // the least name above it
	}
}

func (s *schedule) tenantOf(l *lane) *tenant {
	at, _ := slices.BinarySearchFunc(s.ring, l.Tenant, compareTenant)
	return s.ring[at]
}

// remember puts a lane first among those that had something lately.
func (s *schedule) remember(l *lane) {
	s.forget(l)
	s.lately = slices.Insert(s.lately, 0, l)
	s.lately = s.lately[:min(len(s.lately), mostLately)]
}

// forget takes a lane out of them.
func (s *schedule) forget(l *lane) {
	s.lately = slices.DeleteFunc(s.lately, func(other *lane) bool { return other == l })
}

// after is where the next pass goes on.
func (l *lane) after() outbox.Mark {
	if !l.reopened || l.mark.Due.IsZero() {
		return l.mark
	}
	return outbox.Mark{Due: l.mark.Due.Add(-overlap)}
}

// reopen lets the next pass come back to a drained lane.
func (s *schedule) reopen(l *lane) {
	at, found := slices.BinarySearchFunc(s.ring, l.Tenant, compareTenant)
	if !found {
		s.ring = slices.Insert(s.ring, at, &tenant{name: l.Tenant})
	}
	s.ring[at].lanes = append(s.ring[at].lanes, l)
	l.drained, l.reopened = false, true
	s.open++
}

// drain takes a lane out of its tenant's turns until the next scan.
func (s *schedule) drain(l *lane) {
	t := s.tenantOf(l)
	t.lanes = slices.DeleteFunc(t.lanes, func(other *lane) bool { return other == l })
	l.drained = true
	s.open--
}
