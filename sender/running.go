package sender

import (
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// running is the messages whose handlers run. It ends a handler's context when the lease ends, however busy the loop is: with one timer for all, since most
// are done long before that. Only the loop changes it, and so reads all without the lock.
type running struct {
	mu    sync.Mutex
	all   map[*held]struct{}
	timer *time.Timer
	at    time.Time // the timer's, zero before the first; no lease ends sooner
}

// add watches over a lease.
func (r *running) add(h *held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[h] = struct{}{}
	if r.at.IsZero() || h.ends.Before(r.at) {
		r.wait(h.ends)
	}
}

func (r *running) remove(h *held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, h)
}

// extend takes in that a lease was renewed.
func (r *running) extend(h *held, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.ends = until
}

// expire ends the contexts of those whose leases have ended.
func (r *running) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next time.Time
	now := time.Now()
	for h := range r.all {
		switch {
		case !now.Before(h.ends):
			h.cancel(outbox.ErrLeaseLost)
		case next.IsZero() || h.ends.Before(next):
			next = h.ends
		}
	}
	r.at = next
	if !next.IsZero() {
		r.wait(next)
	}
}

func (r *running) wait(until time.Time) {
	r.at = until
	if r.timer == nil {
		r.timer = time.AfterFunc(time.Until(until), r.expire)
	} else {
		r.timer.Reset(time.Until(until))
	}
}

// end says that the loop has come to its end.
func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
