package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An Observer is told what happens, for metrics and traces. Any field may be nil. The functions are called after the fact, but for Propagate
// and HandlerStarting, and the caller waits for them, so they must be quick; they must be safe for concurrent use. One that panics is
// contained. One that ends its goroutine is too, but for Propagate, Enqueued, Settled, HandlerStarting and HandlerDone: these are called in
// the goroutine of the caller, as they are called most. Slices belong to the caller. Several become one by Observers.
type Observer struct {
	// Propagate gives the trace context of ctx, which then travels in the metadata of every effect enqueued under ctx and is no part of its
	// content. Of the names traceparent, tracestate and baggage, in that order, as many as make at most 2 KiB; all else is left out.
	Propagate func(ctx context.Context) map[string]string
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
	// LeaseLost: a renewal or a settle found the lease gone, but for a renewal that the delivery under the same lease had overtaken.
	LeaseLost func(ctx context.Context, message Message)
	// GivenBack: leases released unspent.
	GivenBack func(ctx context.Context, messages []Message)
	// HandlerStarting: a handler is about to be called, and gets the context that is returned: ctx with values added. One that ends at
	// another time than ctx is refused. Attempts that a handler's Reconcile settles count too.
	HandlerStarting func(ctx context.Context, message Message) context.Context
	// HandlerDone: a handler returned after took. ctx is the handler's.
	HandlerDone func(ctx context.Context, message Message, outcome Outcome, took time.Duration)
	// Rescan: a sender looked at the lanes of a consumer from the front again, which took that long.
	Rescan func(ctx context.Context, consumer *Consumer, took time.Duration)
	// Listening: a listening connection was established (up), or it broke. Each true is followed by one false.
	Listening func(ctx context.Context, up bool)
	// Measured: a janitor counted what stands in the database. Each janitor does so, whichever of them purges.
	Measured func(ctx context.Context, stats Stats, pauses []Pause)
	// Purged: a janitor removed so many messages of a terminal state.
	Purged func(ctx context.Context, state State, count int)
	// JanitorDone: a janitor's tick ended at that time; nil is success.
	JanitorDone func(ctx context.Context, at time.Time, err error)
	// Contained: code of the application (an observer, a backoff, a redactor, a log handler) panicked, ended its goroutine or answered nonsense
	// and was passed by.
	Contained func(what string, problem any)
}

// errEnded is the problem with code of the application that ended its goroutine, as FailNow of a test does.
var errEnded = errors.New("ended its goroutine (runtime.Goexit)")

// contain calls f and reports its panic instead of passing it on. f has a goroutine of its own, since one that it ends cannot be saved.
func contain[T any](f func() T) (value T, problem error) {
	problem = errEnded
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				problem = fmt.Errorf("panicked: %v", p) // which may end the goroutine in turn
			}
		}()
		value = f()
		problem = nil
	}()
	<-done
	return value, problem
}
