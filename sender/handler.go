package sender

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// Handlers are what a sender performs, by kind. The set is fixed when the sender is made: messages of other kinds are never leased.
type Handlers map[string]Handler

// A Handler performs the messages of one kind. Either Do or DoResult is set.
type Handler struct {
	// Do performs a message. Nil is a delivery; an error is tried again by the policy, unless it is wrapped by outbox.Permanent, Moot, Unknown,
	// Unavailable or Snooze. A panic and a runtime.Goexit are ordinary failures.
	//
	// The context ends when the message must not be performed any more; its cause says why: outbox.ErrLeaseLost (no later than the lease
	// itself), ErrCancelled, ErrPaused, ErrStopping, ErrRevoked, or ErrTimeout. It carries the values of Run's context, and those
	// that an outbox.Observer adds. The sender holds no connection, transaction or lock meanwhile.
	Do func(context.Context, outbox.Message) error
	// DoResult is Do with a text to keep in the settlement of a delivery.
	DoResult func(context.Context, outbox.Message) (string, error)
	// Reconcile, if set, is asked what became of an earlier attempt that may have performed the message, before anything is performed again:
	// after an Unknown outcome, and after a lease that was lost. An error is Unknown. While the answer is Unknown the message is tried again by
	// the policy, and parked when its attempts are spent. Without Reconcile an Unknown outcome parks the message at once.
	Reconcile func(context.Context, outbox.Message) (Outcome, error)
	// MaxAge is how old a message may be when it is performed, where that is shorter than the policy's. Default: the policy's.
	MaxAge time.Duration
	// Timeout ends the context of Do and that of Reconcile. Default: none. At most LongestHold.
	Timeout time.Duration
	// UnknownOnTimeout makes an ordinary failure of Do after its Timeout, a panic included, an Unknown outcome: the target may have acted on what
	// it received.
	UnknownOnTimeout bool
	// Lease is Config.Lease for this kind alone.
	Lease time.Duration
}

// An Outcome is what became of an earlier attempt.
type Outcome int

const (
	// Unknown: still not known; do not perform the message.
	Unknown Outcome = iota
	// Delivered: it was performed.
	Delivered
	// Failed: it was not, and may be performed now.
	Failed
)

// do is Do or DoResult, as an outcome.
func (h Handler) do(ctx context.Context, m outbox.Message) outbox.Outcome {
	if h.DoResult == nil {
		return outbox.OutcomeOf(h.Do(ctx, m))
	}
	result, err := h.DoResult(ctx, m)
	if err != nil {
		return outbox.OutcomeOf(err)
	}
	return outbox.DeliveredWith(result)
}
