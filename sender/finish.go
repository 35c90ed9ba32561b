package sender

import (
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// finish takes in that a handler is done: its slot is free, and what came of the message is to be recorded.
func (w *worker) finish(h *held) {
	w.running.remove(h)
	h.cancel(nil)
	w.pace.took(h.done.Sub(h.started))
	w.let(h)
	switch {
	case h.gone != nil && !w.acceptsLate(h):
		w.counts.Lost++
	case h.interrupted:
		w.unwanted = append(w.unwanted, h)
	default:
		w.noteTarget(h)
		w.finished = append(w.finished, h)
		w.pressing = w.pressing || h.pressing()
		if h.OrderKey != "" {
			w.following++
		}
	}
}

// acceptsLate says whether a delivery may still be recorded although a renewal found the lease lost: it may only be over, not another's. The
// settle decides.
func (w *worker) acceptsLate(h *held) bool {
	return h.gone == outbox.ErrLeaseLost && h.outcome.Verdict() == outbox.VerdictDelivered && w.consumer.Policy().AcceptLate
}

// noteTarget keeps count of the failures of a lane's target. Every other outcome shows that the target can be reached.
func (w *worker) noteTarget(h *held) {
	if h.outcome.Verdict() == outbox.VerdictUnavailable {
		h.failures = w.schedule.unavailable(h.Lane(), h.started, h.done, func(failures int) time.Duration {
			return w.box.RetryDelay(w.consumer, h.Message, failures)
		})
	} else {
		w.schedule.reached(h.Lane())
	}
}
