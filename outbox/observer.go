package outbox

import (
	"context"
	"fmt"
	"time"
)

// An Observer is told what happens, for metrics and traces. Any field may be nil. The functions are called after the fact, in the caller's
// goroutine, so they must be quick and safe for concurrent use; one that panics is contained. Slices belong to the caller.
type Observer struct {
	// Enqueued: effects and, at the same places, what became of them. The transaction may still be rolled back.
	Enqueued func(ctx context.Context, effects []Effect, receipts []Receipt)
	// Leased: messages that a worker has now.
	Leased func(ctx context.Context, messages []Message)
	// Settled: one settle that was answered, StaleLease included.
	Settled func(ctx context.Context, message Message, outcome Outcome, result Result)
	// Retried: a message comes due again after delay.
	Retried func(ctx context.Context, message Message, outcome Outcome, delay time.Duration)
	// Dead: a message died, at a settle or, without its handler being called, at a lease. A settle that finds the same death recorded already
	// tells of it too, since the answer to the first one may have been lost.
	Dead func(ctx context.Context, burial Burial)
	// LeaseLost: a renewal or a settle found the lease gone.
	LeaseLost func(ctx context.Context, message Message)
	// GivenBack: leases released unspent.
	GivenBack func(ctx context.Context, messages []Message)
	// HandlerDone: a handler returned after took.
	HandlerDone func(ctx context.Context, message Message, outcome Outcome, took time.Duration)
	// Rescan: a sender looked at the lanes of a consumer from the front again, which took that long.
	Rescan func(ctx context.Context, consumer *Consumer, took time.Duration)
	// Contained: code of the application (an observer, a backoff, a redactor) panicked or answered nonsense and was passed by.
	Contained func(what string, problem any)
}

// safe is an Observer without nil fields whose functions cannot break their caller.
func (o Observer) safe() Observer {
	contained := func(what string, problem any) {
		if o.Contained == nil {
			return
		}
		defer func() { _ = recover() }()
		o.Contained(what, problem)
	}
	guard := func(name string) {
		if problem := recover(); problem != nil {
			contained("Observer."+name, problem)
		}
	}
	s := Observer{Contained: contained}
	s.Enqueued = func(ctx context.Context, effects []Effect, receipts []Receipt) {
		if o.Enqueued != nil {
			defer guard("Enqueued")
			o.Enqueued(ctx, effects, receipts)
		}
	}
	s.Leased = func(ctx context.Context, messages []Message) {
		if o.Leased != nil && len(messages) > 0 {
			defer guard("Leased")
			o.Leased(ctx, messages)
		}
	}
	s.Settled = func(ctx context.Context, message Message, outcome Outcome, result Result) {
		if o.Settled != nil {
			defer guard("Settled")
			o.Settled(ctx, message, outcome, result)
		}
	}
	s.Retried = func(ctx context.Context, message Message, outcome Outcome, delay time.Duration) {
		if o.Retried != nil {
			defer guard("Retried")
			o.Retried(ctx, message, outcome, delay)
		}
	}
	s.Dead = func(ctx context.Context, burial Burial) {
		if o.Dead != nil {
			defer guard("Dead")
			o.Dead(ctx, burial)
		}
	}
	s.LeaseLost = func(ctx context.Context, message Message) {
		if o.LeaseLost != nil {
			defer guard("LeaseLost")
			o.LeaseLost(ctx, message)
		}
	}
	s.GivenBack = func(ctx context.Context, messages []Message) {
		if o.GivenBack != nil && len(messages) > 0 {
			defer guard("GivenBack")
			o.GivenBack(ctx, messages)
		}
	}
	s.HandlerDone = func(ctx context.Context, message Message, outcome Outcome, took time.Duration) {
		if o.HandlerDone != nil {
			defer guard("HandlerDone")
			o.HandlerDone(ctx, message, outcome, took)
		}
	}
	s.Rescan = func(ctx context.Context, consumer *Consumer, took time.Duration) {
		if o.Rescan != nil {
			defer guard("Rescan")
			o.Rescan(ctx, consumer, took)
		}
	}
	return s
}

// contain calls f and reports its panic instead of passing it on.
func contain[T any](f func() T) (value T, problem error) {
	defer func() {
		if p := recover(); p != nil {
			problem = fmt.Errorf("panicked: %v", p)
		}
	}()
	return f(), nil
}
