package sender

import (
	"slices"
	"time"
)

// A message that loses its lease again and again may be one that kills its worker, or one that was unlucky to run beside such a message. On
// its last attempt it is performed alone, so that the innocent get through and the guilty takes nobody along. Both the wait for the others
// to finish and the time it is left alone end after a third of the shortest lease, since it may also be one of many that run for hours.

// suspect says whether a message is on its last attempt after a lease that was lost. Where outcomes are reconciled an unsure one has more
// likely had an Unknown outcome, and Reconcile is asked before anything that may kill.
func (w *worker) suspect(h *held) bool {
	return h.Unsure && h.handler.Reconcile == nil && h.Attempt >= w.consumer.Policy().MaxAttempts
}

// seclude prepares for a suspect that waits, by giving back all else that waits. It says whether nothing may start yet.
func (w *worker) seclude(now time.Time) bool {
	if w.suspects == 0 || w.stop.begun {
		return false
	}
	at := slices.IndexFunc(w.waiting, w.suspect)
	if at < 0 {
		return false
	}
	h := w.waiting[at]
	for _, other := range w.waiting {
		if other != h {
			w.giveBack(other)
		}
	}
	w.waiting = []*held{h}
	patient := h.since.Add(w.shortest / 3)
	if w.alone() || !now.Before(patient) {
		return false
	}
	w.look(patient)
	return true
}

// alone says whether nothing is held but what waits.
func (w *worker) alone() bool {
	return len(w.running.all)+len(w.finished)+len(w.unwanted) == 0 && !w.busy[settling] && !w.busy[releasing] && !w.busy[leasing] && !w.busy[confirming]
}

// secluded says whether nothing is to be leased because a suspect waits, or is left alone.
func (w *worker) secluded(now time.Time) bool {
	if w.suspects == 0 {
		return false
	}
	if slices.ContainsFunc(w.waiting, w.suspect) {
		return true
	}
	for h := range w.running.all {
		if until := h.started.Add(w.shortest / 3); w.suspect(h) && now.Before(until) {
			w.look(until)
			return true
		}
	}
	return false
}
