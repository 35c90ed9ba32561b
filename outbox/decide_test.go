package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Shows: S1.7 S1.23 S1.26
func TestDecide(t *testing.T) {
	t.Parallel()
	policy := Policy{MaxAttempts: 3, InitialDelay: time.Second, MaxDelay: 10 * time.Second, Jitter: NoJitter}
	snoozing := policy
	snoozing.MaxSnooze = time.Minute
	down := errors.New("down")
	for name, test := range map[string]struct {
		policy   Policy
		message  Message
		outcome  Outcome
		settling Settling
		want     decision
	}{
		"delivered":     {outcome: Delivered(), want: decision{verb: verbDeliver}},
		"with a result": {outcome: DeliveredWith(" receipt\x00 "), want: decision{verb: verbDeliver, result: "receipt\uFFFD"}},
		"failed":        {message: Message{Attempt: 2}, outcome: Failed(down), want: decision{verb: verbRetry, delay: 2 * time.Second, reason: "down"}},
		"failed, unsure": {message: Message{Attempt: 1, Unsure: true}, outcome: Failed(down),
			want: decision{verb: verbRetry, delay: time.Second, unsure: true, reason: "down"}},
		"failed, unsure, reconciles": {message: Message{Attempt: 1, Unsure: true}, outcome: Failed(down), settling: Settling{Reconciles: true},
			want: decision{verb: verbRetry, delay: time.Second, reason: "down"}},
		"failed, spent":  {message: Message{Attempt: 3}, outcome: Failed(down), want: decision{verb: verbBury, cause: CauseAttempts, reason: "down"}},
		"failed, beyond": {message: Message{Attempt: 4}, outcome: Failed(down), want: decision{verb: verbBury, cause: CauseAttempts, reason: "down"}},
		"permanent":      {message: Message{Attempt: 1}, outcome: Failed(Permanent(down)), want: decision{verb: verbBury, cause: CausePermanent, reason: "down"}},
		"moot":           {message: Message{Attempt: 1}, outcome: Failed(Moot(down)), want: decision{verb: verbBury, cause: CauseMoot, reason: "down"}},
		"unknown":        {message: Message{Attempt: 1}, outcome: Failed(Unknown(down)), want: decision{verb: verbPark, reason: "down"}},
		"unknown, reconciles": {message: Message{Attempt: 1}, outcome: Failed(Unknown(down)), settling: Settling{Reconciles: true},
			want: decision{verb: verbRetry, delay: time.Second, unsure: true, reason: "down"}},
		"unknown, reconciles, spent": {message: Message{Attempt: 3}, outcome: Failed(Unknown(down)), settling: Settling{Reconciles: true},
			want: decision{verb: verbPark, reason: "down"}},
		"unavailable": {message: Message{Attempt: 3}, outcome: Failed(Unavailable(down)),
			want: decision{verb: verbRetryUnspent, delay: time.Second, reason: "down"}},
		"unavailable again": {message: Message{Attempt: 1, Unsure: true}, outcome: Failed(Unavailable(down)), settling: Settling{Failures: 4},
			want: decision{verb: verbRetryUnspent, delay: 8 * time.Second, unsure: true, reason: "down"}},
		"snoozed": {policy: snoozing, message: Message{Attempt: 3}, outcome: Failed(Snooze(5 * time.Second)),
			want: decision{verb: verbRetryUnspent, delay: 5 * time.Second, reason: "snoozed for 5s"}},
		"snoozed for long": {policy: snoozing, message: Message{Attempt: 1}, outcome: Failed(Snooze(time.Hour)),
			want: decision{verb: verbRetryUnspent, delay: time.Minute, reason: "snoozed for 1h0m0s"}},
		"snoozed for nothing": {policy: snoozing, message: Message{Attempt: 1}, outcome: Failed(Snooze(0)),
			want: decision{verb: verbRetryUnspent, delay: time.Second, reason: "snoozed for 0s"}},
		"snooze is not allowed": {message: Message{Attempt: 3}, outcome: Failed(Snooze(5 * time.Second)),
			want: decision{verb: verbBury, cause: CauseAttempts, reason: "snoozed for 5s"}},
	} {
		if test.policy.MaxAttempts == 0 {
			test.policy = policy
		}
		b := newBench(t, Config{}, test.policy)
		test.settling.Message, test.settling.Outcome = test.message, test.outcome
		if got := b.box.decide(b.consumer, test.settling); got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, test.want)
		}
	}
}

type silent struct{}

func (silent) Error() string { return " \n" }

type explosive struct{}

func (*explosive) Error() string { panic("Error of a nil pointer") }
func (*explosive) Unwrap() error { panic("Unwrap of a nil pointer") }

// Shows: S1.20 S1.22
func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, test := range map[string]struct {
		err     error
		verdict Verdict
		reason  string
	}{
		"nil":                {nil, VerdictDelivered, ""},
		"ordinary":           {down, VerdictFailed, "down"},
		"kept as it is":      {errors.New(" down\n"), VerdictFailed, " down\n"},
		"permanent":          {Permanent(down), VerdictPermanent, "down"},
		"wrapped":            {fmt.Errorf("call: %w", Unknown(down)), VerdictUnknown, "call: down"},
		"joined":             {errors.Join(down, Moot(down)), VerdictMoot, "down\ndown"},
		"the outermost mark": {Unavailable(fmt.Errorf("again: %w", Permanent(down))), VerdictUnavailable, "again: down"},
		"snooze":             {fmt.Errorf("not yet: %w", Snooze(time.Second)), VerdictSnoozed, "not yet: snoozed for 1s"},
		"without text":       {silent{}, VerdictFailed, "outbox.silent"},
		"marked silent":      {Permanent(silent{}), VerdictPermanent, "outbox.silent"},
		"panics":             {(*explosive)(nil), VerdictFailed, "*outbox.explosive whose Error method panicked"},
	} {
		got := OutcomeOf(test.err)
		if got.Verdict() != test.verdict || got.Reason() != test.reason {
			t.Errorf("%s: %v %q, want %v %q", name, got.Verdict(), got.Reason(), test.verdict, test.reason)
		}
	}
	for _, mark := range []func(error) error{Permanent, Moot, Unknown, Unavailable} {
		if mark(nil) != nil {
			t.Error("a mark of nil is no success")
		}
		if !errors.Is(mark(down), down) {
			t.Error("a mark hides its cause")
		}
	}
	labels := map[string]bool{}
	for v := VerdictNone; v <= VerdictSnoozed; v++ {
		labels[v.String()] = true
	}
	if len(labels) != 8 || strings.Contains(fmt.Sprint(labels), "%") {
		t.Errorf("labels %v", labels)
	}
}
