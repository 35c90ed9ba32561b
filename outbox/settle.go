package outbox

import (
	"context"
	"time"
)

// A Settling is one message with its outcome.
type Settling struct {
	Message Message
	Outcome Outcome
	// Reconciles says that the kind can be asked what became of an attempt: an Unknown outcome is then tried again, still unsure, until the
	// policy's attempts are spent. Without it such a message is parked.
	Reconciles bool
	// Failures is the count of Unavailable answers in a row that the delay grows with. Less than one counts as one.
	Failures int
}

// A Result is what a settle did.
type Result struct {
	// Status is Acknowledged, RetryScheduled, DeadLettered, Parked, StaleLease or SettleUnknown.
	Status Status
	// Attempt is the message's count after the settle.
	Attempt int
	// Delay until a scheduled retry.
	Delay time.Duration
	// Cause of a dead letter.
	Cause Cause
	// Reason as it was recorded.
	Reason string
	// Recorded, of a StaleLease: the same outcome stands recorded for this very lease, so an earlier settle of it succeeded.
	Recorded bool
}

// Settle records what came of one leased message. See SettleMany.
func (b *Box) Settle(ctx context.Context, consumer *Consumer, scope Scope, message Message, outcome Outcome) (Result, error) {
	results, err := b.SettleMany(ctx, consumer, scope, []Settling{{Message: message, Outcome: outcome}})
	if len(results) == 0 {
		return Result{}, err
	}
	return results[0], err
}

// SettleMany records what came of leased messages, one statement for each kind of outcome, and answers with one Result each, in input
// order. An invalid one refuses all before any statement. When a statement's answer does not come back its results say SettleUnknown, the
// error is (or joins) a *SettleUnknownError, and the results of the other statements stand: settle only the unknown ones again.
func (b *Box) SettleMany(ctx context.Context, consumer *Consumer, scope Scope, settlings []Settling) ([]Result, error) {
	return nil, nil
}
