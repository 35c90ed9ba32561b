package sender

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

const (
	flushAfter = 5 * time.Millisecond // finished messages wait so long for company
	flushFull  = 100                  // or until there are so many, and a batch's worth
	settleMost = 1_000                // of one call
)

// settle records what came of finished messages.
func (w *worker) settle(now time.Time) {
	w.dropUnanswered(now)
	if len(w.finished) == 0 {
		if !w.busy[settling] {
			w.outage.forget(settling)
		}
		return
	}
	if at := w.flushAt(); now.Before(at) {
		w.look(at)
		return
	}
	if !w.may(settling, now) {
		return
	}
	n := min(len(w.finished), settleMost)
	batch := w.finished[:n:n]
	w.finished = w.finished[n:]
	w.record(batch)
}

// flushAt is when the next settle is due. The next message of an order key waits for it, so ordered messages do not wait.
func (w *worker) flushAt() time.Time {
	if len(w.finished) >= max(flushFull, w.config.Batch) || w.following > 0 || w.pressing || w.stop.begun {
		return time.Time{}
	}
	return w.finished[0].done.Add(flushAfter)
}

func (w *worker) record(batch []*held) {
	settlings := w.settlings[:0]
	for _, h := range batch {
		settlings = append(settlings, outbox.Settling{Message: h.Message, Outcome: h.outcome, Reconciles: h.handler.Reconcile != nil, Failures: h.failures})
	}
	w.settlings = settlings
	// Over a slow link passes alone, which measure it, lease more than they may ask for.
	follow := w.following > 0 && !w.stop.begun && !w.untrusted(time.Now()) && len(batch) <= w.most
	worker, lease := w.id, w.shortest
	var results []outbox.Result
	var successors []outbox.Message
	var since time.Time
	var followErr error
	w.call(settling, w.shortest/3, func(ctx context.Context) (err error) {
		results, err = w.box.SettleMany(ctx, w.consumer, w.config.Scope, settlings)
		if err == nil && follow {
			since = time.Now()
			successors, followErr = w.box.LeaseSuccessors(ctx, outbox.SuccessorPlan{
				Consumer: w.consumer, Worker: worker, As: w.identity, Scope: w.config.Scope, For: lease, Kinds: w.kinds, Settled: ended(settlings, results),
			})
		}
		return err
	}, func(err error) {
		now := time.Now()
		if err == nil {
			w.outage.worked(settling, now)
		}
		clear(settlings) // lest payloads stay until the next
		w.settled(batch, results)
		w.take(successors, lease, since)
		if followErr != nil && w.calls.Err() == nil {
			w.askLess()
			w.failed(leasing, followErr)
			w.leaseFailed(followErr)
		}
	})
}

// ended are the settled messages whose order keys are free for the next message.
func ended(settlings []outbox.Settling, results []outbox.Result) []outbox.Message {
	var messages []outbox.Message
	for i, result := range results {
		if result.Status == outbox.Acknowledged || result.Status == outbox.DeadLettered {
			messages = append(messages, settlings[i].Message)
		}
	}
	return messages
}

// settled takes in the answer to a settle. What was not answered is settled again until its lease ends; results are nil when no statement was
// sent.
func (w *worker) settled(batch []*held, results []outbox.Result) {
	var unanswered []*held
	for i, h := range batch {
		if results == nil || results[i].Status == outbox.SettleUnknown {
			h.unanswered = true
			unanswered = append(unanswered, h)
			continue
		}
		w.tally(results[i])
		w.dismiss(h)
	}
	w.finished = append(unanswered, w.finished...)
	w.pressing = slices.ContainsFunc(w.finished, (*held).pressing)
}

// tally counts a result, be it one of an earlier settle whose answer was lost.
func (w *worker) tally(result outbox.Result) {
	switch {
	case result.Status == outbox.Acknowledged, result.State == outbox.StateDelivered:
		w.counts.Delivered++
	case result.Status == outbox.DeadLettered, result.State == outbox.StateDead:
		w.counts.Dead++
	case result.Status == outbox.Parked, result.State == outbox.StateParked:
		w.counts.Parked++
	case result.Status == outbox.RetryScheduled, result.Recorded:
		w.counts.Retried++
	default:
		w.counts.Lost++
	}
}

// dropUnanswered gives up messages whose settle was not answered before their lease ended: whoever leases them next decides.
func (w *worker) dropUnanswered(now time.Time) {
	if !w.pressing || w.busy[settling] {
		return
	}
	w.finished = slices.DeleteFunc(w.finished, func(h *held) bool {
		if !h.unanswered {
			return false
		}
		if now.Before(h.ends) {
			w.look(h.ends)
			return false
		}
		w.reportUnanswered(h)
		w.counts.Lost++
		w.dismiss(h)
		return true
	})
	w.pressing = slices.ContainsFunc(w.finished, (*held).pressing)
}

// reportUnanswered logs what an operator needs to find out whether the outcome was recorded.
func (w *worker) reportUnanswered(h *held) {
	w.log.Error("settle was not answered before the lease ended; it may or may not be recorded",
		"id", h.ID, "key", h.Key, "epoch", h.Epoch, "outcome", h.outcome.Verdict().String())
}

// dismiss lets go of a message whose outcome is recorded or given up.
func (w *worker) dismiss(h *held) {
	if h.OrderKey != "" {
		w.following--
	}
}
