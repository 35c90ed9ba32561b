package sender

import "time"

const (
	crowd       = 3          // messages
	restShare   = 2          // a rest is so many times what the call took
	longestRest = flushAfter // and no longer
)

// A rest lets what is committed gather company. What comes alone is answered at once. After a call that got a crowd, which came while
// the one before it ran, the next waits: so calls for commits take a third of the time, or rest for 5 ms, however fast these come, and get the more.
type rest struct{ until time.Time }

func (r *rest) called(got int, took time.Duration, ended time.Time) {
	r.until = time.Time{}
	if got >= crowd {
		r.until = ended.Add(min(restShare*took, longestRest))
	}
}
