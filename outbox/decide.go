package outbox

import (
	"time"
)

// A verb is one way to end a lease, and one statement.
type verb int

const (
	verbDeliver verb = iota
	verbRetry
	verbRetryUnspent
	verbBury
	verbPark
	verbs // their number
)

// A decision is what the policy makes of an outcome.
type decision struct {
	verb   verb
	result string        // of a delivery
	reason string        // of a failure, at most 4 KiB
	cause  Cause         // of a burial
	delay  time.Duration // of a retry
	unsure bool          // of a retry: nobody knows whether the effect was performed
}

// decide applies the policy to one outcome. The rule for a spent message (attempt >= limit) is that of the lease: one more lease would
// bury it.
func (b *Box) decide(c *Consumer, s Settling) decision {
	m, outcome := s.Message, s.Outcome
	if outcome.verdict == VerdictDelivered {
		return decision{verb: verbDeliver, result: b.storable(outcome.result, maxReason)}
	}
	reason := b.reason(outcome.reason, maxReason)
	spent := m.Attempt >= c.policy.MaxAttempts
	switch verdict := outcome.verdict; {
	case verdict == VerdictPermanent:
		return decision{verb: verbBury, cause: CausePermanent, reason: reason}
	case verdict == VerdictMoot:
		return decision{verb: verbBury, cause: CauseMoot, reason: reason}
	case verdict == VerdictUnavailable:
		return decision{verb: verbRetryUnspent, delay: b.RetryDelay(c, m, max(s.Failures, 1)), unsure: m.Unsure, reason: reason}
	case verdict == VerdictSnoozed && c.policy.MaxSnooze > 0:
		return decision{verb: verbRetryUnspent, delay: snooze(c.policy, outcome.snooze), unsure: m.Unsure, reason: reason}
	case verdict == VerdictUnknown && (spent || !s.Reconciles):
		return decision{verb: verbPark, reason: reason}
	case spent:
		return decision{verb: verbBury, cause: CauseAttempts, reason: reason}
	default:
		// Where a kind can be asked it was, before this attempt; else the handler speaks of this attempt alone, and not of the earlier one.
		unsure := verdict == VerdictUnknown || m.Unsure && !s.Reconciles
		return decision{verb: verbRetry, delay: b.RetryDelay(c, m, m.Attempt), unsure: unsure, reason: reason}
	}
}

// snooze bounds what a handler asks for. Zero would come due at once, again and again without spending an attempt.
func snooze(policy Policy, asked time.Duration) time.Duration {
	if asked <= 0 {
		asked = curve(policy.InitialDelay, policy.MaxDelay, 1)
	}
	return min(asked, policy.MaxSnooze)
}
