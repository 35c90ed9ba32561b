package property_test

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// A saying is what a worker says came of a message.
type saying struct {
	word       string
	text       text
	snooze     time.Duration
	reconciles bool
	failures   int
}

// words are what may be said, some twice to be said more often.
var words = []string{"delivered", "delivered", "failed", "failed", "permanent", "moot", "unknown", "unknown", "unavailable", "snoozed"}

func (m *machine) drawSaying() saying {
	return saying{
		word:       one(m.rt, "outcome", words),
		text:       one(m.rt, "reason", texts),
		snooze:     one(m.rt, "snooze", []time.Duration{0, unit, 5 * unit}),
		reconciles: rapid.Bool().Draw(m.rt, "reconciles"),
		failures:   number(m.rt, "failures", 0, 3),
	}
}

func (s saying) outcome() outbox.Outcome {
	err := errors.New(s.text.given)
	switch s.word {
	case "delivered":
		return outbox.DeliveredWith(s.text.given)
	case "permanent":
		return outbox.Failed(outbox.Permanent(err))
	case "moot":
		return outbox.Failed(outbox.Moot(err))
	case "unknown":
		return outbox.Failed(outbox.Unknown(err))
	case "unavailable":
		return outbox.Failed(outbox.Unavailable(err))
	case "snoozed":
		return outbox.Failed(outbox.Snooze(s.snooze))
	default:
		return outbox.Failed(err)
	}
}

// A ruling is what the policy and the model make of one saying.
type ruling struct {
	*machine
	client
	who    settler
	hand   hand
	saying saying
	before *row // the message before, nil when the caller may not see it
}

// settled is what a policy makes of an outcome, and what the model answers. The policy goes by the message as the worker got it.
func (m *machine) settled(c client, s scope, h hand, say saying) outbox.Result {
	r := ruling{machine: m, client: c, who: settler{c.consumer, c.target, s, c.rule}, hand: h, saying: say}
	if h.Consumer != c.consumer || h.Target != c.target {
		return r.stale(false)
	}
	if seen := m.model.within(s, h.ID); seen != nil {
		before := *seen
		r.before = &before
	}
	spent := h.Attempt >= c.rule.attempts
	switch {
	case say.word == "delivered":
		return r.deliver()
	case say.word == "permanent":
		return r.bury(outbox.CausePermanent)
	case say.word == "moot":
		return r.bury(outbox.CauseMoot)
	case say.word == "unavailable":
		return r.retry(retrying{delay: c.curve(max(say.failures, 1)), unspent: true, unsure: h.Unsure})
	case say.word == "snoozed" && c.policy.MaxSnooze > 0:
		return r.retry(retrying{delay: c.snooze(say.snooze), unspent: true, unsure: h.Unsure})
	case say.word == "unknown" && (spent || !say.reconciles):
		return r.park()
	case spent:
		return r.bury(outbox.CauseAttempts)
	default:
		return r.retry(retrying{delay: c.curve(h.Attempt), unsure: say.word == "unknown" || h.Unsure && !say.reconciles})
	}
}

// curve doubles from the policy's first delay up to its longest (I13).
func (c client) curve(n int) instant {
	delay := c.policy.InitialDelay
	for range n - 1 {
		delay = min(2*delay, c.policy.MaxDelay)
	}
	return micros(delay)
}

func (c client) snooze(asked time.Duration) instant {
	if asked == 0 {
		asked = c.policy.InitialDelay
	}
	return micros(min(asked, c.policy.MaxSnooze))
}

func (r ruling) deliver() outbox.Result {
	if !r.model.deliver(r.who, r.hand.handle(), r.saying.text.full) {
		return r.stale(r.standsAs(delivered))
	}
	r.removed += int(bit(r.rule.drop))
	return outbox.Result{Status: outbox.Acknowledged, Attempt: r.hand.Attempt}
}

func (r ruling) bury(cause outbox.Cause) outbox.Result {
	if !r.model.bury(r.who, r.hand.handle(), string(cause), r.saying.text.full) {
		return r.stale(r.standsAs(dead) && r.before.cause == string(cause))
	}
	return outbox.Result{Status: outbox.DeadLettered, Attempt: r.hand.Attempt, Cause: cause, Reason: r.saying.text.full}
}

func (r ruling) park() outbox.Result {
	if !r.model.park(r.who, r.hand.handle(), r.saying.text.short) {
		return r.stale(r.standsAs(parked))
	}
	return outbox.Result{Status: outbox.Parked, Attempt: r.hand.Attempt, Reason: r.saying.text.short}
}

func (r ruling) retry(t retrying) outbox.Result {
	t.reason = r.saying.text.short
	switch ok, aged := r.model.retry(r.who, r.hand.handle(), t); {
	case aged:
		return outbox.Result{Status: outbox.DeadLettered, Attempt: r.hand.Attempt, Cause: outbox.CauseAge}
	case ok:
		return outbox.Result{
			Status: outbox.RetryScheduled, Attempt: r.model.find(r.hand.ID).attempt, Delay: time.Duration(t.delay) * time.Microsecond, Reason: t.reason,
		}
	}
	left := r.hand.Attempt - int(bit(t.unspent)) // what the count would have come to
	free := r.standsAs(pending) && !r.before.held() && r.before.attempt == left && r.before.lastError == t.reason
	aged := "too old; last error: " + r.saying.text.full
	return r.stale(free || r.standsAs(dead) && r.before.cause == "age" && r.before.reason == aged[:min(len(aged), len(r.before.reason))] &&
		len(r.before.reason) > min(len(aged), 4092)-1) // cut at a rune
}

// standsAs says whether the message stands so, since this very lease.
func (r ruling) standsAs(s state) bool {
	return r.before != nil && r.before.state == s && r.before.epoch == r.hand.Epoch
}

// stale is the answer to a settle that changes nothing; recorded, when what stands is this very outcome of this very lease: an earlier
// settle whose answer was lost.
func (r ruling) stale(recorded bool) outbox.Result {
	result := outbox.Result{Status: outbox.StaleLease, Attempt: r.hand.Attempt, Recorded: recorded}
	if recorded {
		result.State = outbox.State(r.before.state.String())
	}
	return result
}
