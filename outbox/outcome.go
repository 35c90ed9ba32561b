package outbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// An Outcome says what came of performing a message. It classifies; the policy decides what follows. Make one with Delivered,
// DeliveredWith, Failed or OutcomeOf.
type Outcome struct {
	verdict Verdict
	reason  string
	result  string
	snooze  time.Duration
}

// A Verdict is the class of an Outcome: a small fixed set, fit for a label.
type Verdict int

const (
	// VerdictNone is that of the zero Outcome, which every settle refuses.
	VerdictNone Verdict = iota
	// VerdictDelivered: the effect was performed.
	VerdictDelivered
	// VerdictFailed: it was not, and may be tried again.
	VerdictFailed
	// VerdictPermanent: it was not, and trying again cannot help.
	VerdictPermanent
	// VerdictMoot: it no longer applies.
	VerdictMoot
	// VerdictUnknown: it may have been performed.
	VerdictUnknown
	// VerdictUnavailable: the target was never reached.
	VerdictUnavailable
	// VerdictSnoozed: not yet.
	VerdictSnoozed
)

func (v Verdict) String() string {
	switch v {
	case VerdictDelivered:
		return "delivered"
	case VerdictFailed:
		return "failed"
	case VerdictPermanent:
		return "permanent"
	case VerdictMoot:
		return "moot"
	case VerdictUnknown:
		return "unknown"
	case VerdictUnavailable:
		return "unavailable"
	case VerdictSnoozed:
		return "snoozed"
	default:
		return "none"
	}
}

// Verdict is the class of the outcome.
func (o Outcome) Verdict() Verdict { return o.verdict }

// Reason is the text of the error, as it was given; empty for a delivery.
func (o Outcome) Reason() string { return o.reason }

// Delivered is success.
func Delivered() Outcome { return Outcome{verdict: VerdictDelivered} }

// DeliveredWith is success with a text to keep in the settlement, such as the receipt of the target. It is cut at 4 KiB.
func DeliveredWith(result string) Outcome {
	return Outcome{verdict: VerdictDelivered, result: result}
}

// Failed is the outcome that err describes: one wrapped by Permanent, Moot, Unknown, Unavailable or Snooze says so, any other may be tried
// again. The reason is the error's text; a settle refuses a blank one, and so a nil err.
func Failed(err error) Outcome {
	if err == nil {
		return Outcome{verdict: VerdictFailed}
	}
	outcome := Outcome{verdict: VerdictFailed, reason: errorText(err)}
	if marked := markOf(err); marked != nil {
		outcome.verdict = marked.verdict
		outcome.snooze = marked.snooze
	}
	return outcome
}

// OutcomeOf is the outcome of a handler that returned err: nil is Delivered. Unlike that of Failed its reason is never blank: an error
// without text is recorded by its Go type.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Delivered()
	}
	outcome := Failed(err)
	if strings.TrimSpace(outcome.reason) == "" {
		if marked, ok := err.(*markedError); ok {
			err = marked.err
		}
		outcome.reason = fmt.Sprintf("%T", err)
	}
	return outcome
}

// Permanent marks an error that trying again cannot help: the message is dead at once. Of nil it is nil.
func Permanent(err error) error { return mark(err, VerdictPermanent) }

// Moot marks an effect that no longer applies: the message is dead at once. Of nil it is nil.
func Moot(err error) error { return mark(err, VerdictMoot) }

// Unknown marks an attempt that may have performed the effect. A kind that can reconcile is asked before the next attempt; without it
// the message is parked. Of nil it is nil.
func Unknown(err error) error { return mark(err, VerdictUnknown) }

// Unavailable marks an attempt that never reached the target: it is tried again without spending an attempt. Of nil it is nil.
func Unavailable(err error) error { return mark(err, VerdictUnavailable) }

// Snooze says "not yet": the message comes due again after d without spending an attempt. It works only where Policy.MaxSnooze allows it,
// which also caps d; elsewhere it is an ordinary failure. A d of zero or less is the policy's InitialDelay, at most its MaxDelay.
func Snooze(d time.Duration) error {
	return &markedError{verdict: VerdictSnoozed, snooze: d, err: fmt.Errorf("snoozed for %v", d)}
}

type markedError struct {
	verdict Verdict
	snooze  time.Duration
	err     error
}

func mark(err error, verdict Verdict) error {
	if err == nil {
		return nil
	}
	return &markedError{verdict: verdict, err: err}
}

func (e *markedError) Error() string { return e.err.Error() }
func (e *markedError) Unwrap() error { return e.err }

// markOf is the outermost mark of an error; nil for none. It survives an Unwrap method that panics.
func markOf(err error) (marked *markedError) {
	defer func() { _ = recover() }()
	errors.As(err, &marked)
	return marked
}

// errorText survives an Error method that panics, as that of a nil pointer in an interface does.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T whose Error method panicked", err)
		}
	}()
	return err.Error()
}
