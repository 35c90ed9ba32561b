package sender

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// ErrLeasesLeft is what Run returns when the database did not let it record or give back all it held before it had to end. The log names the
// messages; they are leased again when their leases end.
var ErrLeasesLeft = errors.New("leases are left to run out")

// A StillRunningError is what Run returns when handlers did not end although their contexts did. They go on running; what they return is
// dropped, and their messages are performed again when the leases end.
type StillRunningError struct {
	// IDs of their messages, rising.
	IDs []int64
}

func (e *StillRunningError) Error() string {
	return fmt.Sprintf("%d handlers would not end, of the messages %v", len(e.IDs), e.IDs)
}

// lastWords is how long handlers have to return once their contexts ended and Config.Grace is over, and the database to record and take back
// what is held then.
const lastWords = 250 * time.Millisecond

// A stop is the end of a run.
type stop struct {
	begun bool
	err   error     // what it was begun for
	drain time.Time // until then handlers are waited for
	told  bool      // that they have to end
}

// beginStop ends leasing; err, if not nil, is why.
func (w *worker) beginStop(err error) {
	if !w.stop.begun {
		w.stop = stop{begun: true, err: err, drain: time.Now().Add(w.config.Drain)}
	}
}

// endStop takes the further steps of a stop when their time has come.
func (w *worker) endStop(now time.Time) {
	if !w.stop.begun {
		return
	}
	if now.Before(w.stop.drain) {
		w.look(w.stop.drain)
		return
	}
	if !w.stop.told {
		w.stop.told = true
		for h := range w.running.all {
			h.cancel(outbox.ErrStopping)
		}
		w.outage.next = now // a last try, however long the backoff
	}
	if last := w.stop.drain.Add(w.config.Grace + lastWords); now.Before(last) {
		w.look(last)
	} else {
		w.endCalls()
	}
}

// over says whether the run has come to its end.
func (w *worker) over() bool {
	switch {
	case w.inFlight > 0:
		return false
	case w.calls.Err() != nil:
		return true
	case len(w.running.all)+len(w.waiting)+len(w.finished)+len(w.unwanted) > 0, w.handOff != nil && w.handOff.Pending():
		return false
	default:
		return w.stop.begun || w.once && (w.schedule.exhausted() || w.counts.Leased >= onceAtMost)
	}
}

// result is what the run returns.
func (w *worker) result() error {
	err := w.stop.err
	if len(w.running.all) > 0 {
		still := &StillRunningError{}
		for h := range w.running.all {
			still.IDs = append(still.IDs, h.ID)
		}
		slices.Sort(still.IDs)
		err = errors.Join(err, still)
	}
	for _, h := range w.finished {
		w.reportUnanswered(h)
	}
	for _, h := range w.unwanted {
		w.log.Error("message could not be given back; its lease runs out", "id", h.ID, "key", h.Key, "epoch", h.Epoch)
	}
	if len(w.finished)+len(w.unwanted) > 0 {
		err = errors.Join(err, ErrLeasesLeft)
	}
	return err
}
