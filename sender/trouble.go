package sender

import (
	"maps"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// forgetAfter is how long the trouble of a lane without due messages is remembered.
const forgetAfter = time.Hour

// A trouble is a lane whose target could not be reached. The lane is held back: one probe at a time, each after the delay of the last,
// until one reaches the target.
type trouble struct {
	failures int       // in a row
	last     time.Time // when the last failure that counts came in
	until    time.Time // no probe before
}

// unavailable says that the target of a lane was not reached by a handler that started then, and gives the count of failures in a row.
// Handlers that ran beside each other fail together: that is one failure. The next probe waits for the delay that comes with the count,
// whatever becomes of the message.
func (s *schedule) unavailable(name outbox.Lane, started, now time.Time, delay func(failures int) time.Duration) int {
	t := s.troubles[name]
	if t == nil {
		t = &trouble{}
		s.troubles[name] = t
	}
	if t.failures == 0 || started.After(t.last) {
		t.failures++
		t.last = now
	}
	t.until = now.Add(delay(t.failures))
	return t.failures
}

// reached says that the target of a lane was reached.
func (s *schedule) reached(name outbox.Lane) { delete(s.troubles, name) }

// take says that a message of a lane is held now.
func (s *schedule) take(name outbox.Lane) { s.taken[name]++ }

// let says that one is held no more.
func (s *schedule) let(name outbox.Lane) {
	if s.taken[name]--; s.taken[name] == 0 {
		delete(s.taken, name)
	}
}

// mayStart says whether a held message of the lane may start: in trouble only the one that is the probe.
func (s *schedule) mayStart(name outbox.Lane, now time.Time) bool {
	t := s.troubles[name]
	return t == nil || s.taken[name] == 1 && t.ready(now)
}

func (t *trouble) ready(now time.Time) bool { return !now.Before(t.until) }

// probe gives the pass that leases one message of each lane that may be probed.
func (s *schedule) probe(now time.Time, room int) (plan, bool) {
	var ready []*lane
	for name, t := range s.troubles {
		if l, ok := s.lanes[name]; ok && !l.drained && s.taken[name] == 0 && t.ready(now) {
			ready = append(ready, l)
		}
	}
	if len(ready) == 0 {
		return plan{}, false
	}
	slices.SortFunc(ready, func(a, b *lane) int { return s.troubles[a.Lane].until.Compare(s.troubles[b.Lane].until) })
	lease := s.leases[ready[0].Kind]
	ready = slices.DeleteFunc(ready, func(l *lane) bool { return s.leases[l.Kind] != lease })
	ready = ready[:min(len(ready), room, maxLanes)]
	return plan{lanes: ready, lease: lease, quota: 1, limit: len(ready)}, true
}

func (s *schedule) forgetTroubles(now time.Time) {
	maps.DeleteFunc(s.troubles, func(name outbox.Lane, t *trouble) bool {
		l, known := s.lanes[name]
		return (!known || l.drained) && s.taken[name] == 0 && now.Sub(t.until) > forgetAfter
	})
}
