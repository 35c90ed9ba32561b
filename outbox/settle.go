package outbox

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A Settling is one message with its outcome.
type Settling struct {
	Message Message
	Outcome Outcome
	// Reconciles says that the kind can be asked what became of an attempt: an Unknown outcome is then tried again, still unsure, until the
	// policy's attempts are spent. Without it such a message is parked, and one that is Unsure stays so through ordinary failures.
	Reconciles bool
	// Failures is the count of Unavailable answers in a row that the delay grows with. Less than one counts as one.
	Failures int
}

// A Result is what a settle did.
type Result struct {
	// Status is Acknowledged, RetryScheduled, DeadLettered, Parked, StaleLease or SettleUnknown.
	Status Status
	// Attempt is the message's count after the settle: one less for an attempt that was not spent.
	Attempt int
	// Delay until a scheduled retry.
	Delay time.Duration
	// Cause of a dead letter.
	Cause Cause
	// Reason as it was recorded: at most 4 KiB for a dead letter, 256 bytes for what goes on.
	Reason string
	// Recorded, of a StaleLease: the same outcome stands recorded for this very lease, so an earlier settle of it succeeded. One exception
	// cannot be told apart: a lease buried the message for its age, and the attempt before this one had failed with the same text.
	Recorded bool
	// State, where Recorded, is what that settle made of the message: delivered, dead, parked or pending.
	State State
}

// Settle records what came of one leased message: see SettleMany.
func (b *Box) Settle(ctx context.Context, consumer *Consumer, scope Scope, message Message, outcome Outcome) (Result, error) {
	var found problems
	one := Settling{Message: message, Outcome: outcome}
	found.settling(one)
	results, err := b.settle(ctx, consumer, scope, []Settling{one}, &found)
	if len(results) == 0 {
		return Result{}, err
	}
	return results[0], err
}

// SettleMany records what came of leased messages, one statement for each kind of outcome and 1,000 messages, and answers with one Result
// each, in input order. One invalid settling refuses all before any statement. When the answer of a statement does not come back, its
// results say SettleUnknown, the error is (or joins) a *SettleUnknownError, and the results of the other statements stand: settle only the
// unknown ones again, with the same outcomes.
func (b *Box) SettleMany(ctx context.Context, consumer *Consumer, scope Scope, settlings []Settling) ([]Result, error) {
	var found problems
	for i, s := range settlings {
		found.at(i).settling(s)
	}
	return b.settle(ctx, consumer, scope, settlings, &found)
}

func (b *Box) settle(ctx context.Context, consumer *Consumer, scope Scope, settlings []Settling, found *problems) ([]Result, error) {
	found.whole().consumer(consumer)
	scope.check(found)
	if err := found.refused(ctx); err != nil {
		return nil, failed("settle", err)
	}
	run := &settleRun{
		box: b, consumer: consumer, scope: scope, settlings: settlings,
		decisions: make([]decision, len(settlings)),
		results:   make([]Result, len(settlings)),
	}
	var groups [verbs][]int
	for i, s := range settlings {
		if s.Message.Consumer != consumer.name || s.Message.Target != consumer.target {
			run.results[i] = Result{Status: StaleLease, Attempt: s.Message.Attempt}
			continue
		}
		run.decisions[i] = b.decide(consumer, s)
		groups[run.decisions[i].verb] = append(groups[run.decisions[i].verb], i)
	}
	var unknown []error
	for v, group := range groups {
		for _, batch := range batches(group, func(i int) int64 { return settlings[i].Message.ID }) {
			if err := run.settle(ctx, verb(v), batch); err != nil {
				unknown = append(unknown, err)
			}
		}
	}
	for i, s := range settlings {
		b.reportSettled(ctx, s, run.results[i])
	}
	return run.results, failed("settle", errors.Join(unknown...))
}

func (p *problems) settling(s Settling) {
	p.held(s.Message)
	switch {
	case s.Outcome.verdict == VerdictNone:
		p.add("Outcome", "is the zero Outcome; use Delivered, Failed or OutcomeOf")
	case s.Outcome.verdict != VerdictDelivered && strings.TrimSpace(s.Outcome.reason) == "":
		p.add("Reason", "is blank")
	}
}

// reportSettled tells the observer of a settle that was answered.
func (b *Box) reportSettled(ctx context.Context, s Settling, result Result) {
	if result.Status == SettleUnknown {
		return
	}
	b.observer.Settled(ctx, s.Message, s.Outcome, result)
	switch {
	case result.Status == RetryScheduled:
		b.observer.Retried(ctx, s.Message, s.Outcome, result.Delay)
	case result.Status == DeadLettered:
		b.reportDead(ctx, Burial{Message: s.Message, Cause: result.Cause, Reason: result.Reason})
	case result.Status == StaleLease && !result.Recorded:
		b.observer.LeaseLost(ctx, s.Message)
	}
}
