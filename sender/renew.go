package sender

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A renewal is one lease with the answer to its renewal.
type renewal struct {
	*held
	outbox.Renewal
	sent time.Time // before the statement
}

// renew extends the leases of all running handlers, in one statement for each length of lease, when the first of them has used up a third.
// A statement that fails is tried again while the leases last: each handler's context ends with its lease whatever happens here.
func (w *worker) renew(now time.Time) {
	switch {
	case len(w.running.all) == 0 && !w.busy[renewing]:
		w.outage.forget(renewing)
		w.renewAt = time.Time{}
		return
	case w.renewAt.IsZero() || w.busy[renewing] || w.stop.told || w.revoked:
		return
	case now.Before(w.renewAt):
		w.look(w.renewAt)
		return
	case !w.may(renewing, now):
		return
	}
	groups := map[time.Duration][]*held{}
	for h := range w.running.all {
		if w.renewable(h, now) {
			groups[h.handler.Lease] = append(groups[h.handler.Lease], h)
		}
	}
	if len(groups) == 0 {
		w.outage.forget(renewing)
		w.renewAt = time.Time{}
		return
	}
	var renewals []renewal
	w.call(renewing, w.shortest/3, func(ctx context.Context) error {
		for length, group := range groups {
			renewed, err := w.renewGroup(ctx, group, length)
			renewals = append(renewals, renewed...)
			if err != nil {
				return err
			}
		}
		return w.lookUp(ctx)
	}, func(err error) {
		began, now := now, time.Now()
		if err == nil {
			w.outage.worked(renewing, now)
			w.lookedUp(began)
		}
		w.renewed(renewals, now)
	})
}

func (w *worker) renewGroup(ctx context.Context, group []*held, length time.Duration) ([]renewal, error) {
	messages := make([]outbox.Message, len(group))
	for i, h := range group {
		messages[i] = h.Message
	}
	sent := time.Now()
	answers, err := w.box.Renew(ctx, messages, length)
	renewals := make([]renewal, len(answers))
	for i, answer := range answers {
		renewals[i] = renewal{held: group[i], Renewal: answer, sent: sent}
	}
	return renewals, err
}

// renewed takes in the answers.
func (w *worker) renewed(renewals []renewal, now time.Time) {
	for _, r := range renewals {
		if _, runs := w.running.all[r.held]; !runs {
			continue
		}
		if r.Err == outbox.ErrLeaseLost || r.Err == outbox.ErrCancelled {
			r.gone = r.Err
			r.cancel(r.Err)
			continue
		}
		r.lease = w.usable(r.handler.Lease)
		if until := r.sent.Add(r.lease); until.After(r.ends) {
			w.running.extend(r.held, until)
		}
		if r.Err != nil {
			r.cancel(r.Err)
		}
	}
	w.renewAt = time.Time{}
	for h := range w.running.all {
		if w.renewable(h, now) {
			w.renewBy(h.ends.Add(-h.lease * 2 / 3))
		}
	}
}

// renewBy makes the next renewal come no later than that.
func (w *worker) renewBy(at time.Time) {
	if w.renewAt.IsZero() || at.Before(w.renewAt) {
		w.renewAt = at
	}
}

// renewable says whether a lease can be extended: it has not ended, and the message has not been held for too long.
func (w *worker) renewable(h *held, now time.Time) bool {
	return h.gone == nil && now.Before(h.ends) && !now.Add(h.handler.Lease).After(h.since.Add(w.config.LongestHold))
}
