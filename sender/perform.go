package sender

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

var (
	errGoexit       = errors.New("handler ended its goroutine (runtime.Goexit)")
	errStillUnknown = errors.New("what became of an earlier attempt is still unknown")
)

// startWaiting starts the messages that have a slot. What has less than a third of its lease left is given back instead, since its handler
// might not be done in time, and so is what waits for a target that turned out to be unavailable.
func (w *worker) startWaiting(now time.Time) {
	if w.seclude(now) {
		return
	}
	for len(w.waiting) > 0 {
		h := w.waiting[0]
		late := h.ends.Add(-h.lease / 3)
		switch {
		case w.stop.begun, !now.Before(late), !w.schedule.mayStart(h.Lane(), now):
			w.giveBack(h)
		case len(w.running) < w.config.Slots:
			w.start(h, now)
		default:
			w.look(late)
			return
		}
		w.waiting = w.waiting[1:]
	}
}

// giveBack lets go of a message that was not started.
func (w *worker) giveBack(h *held) {
	w.let(h)
	w.unwanted = append(w.unwanted, h)
}

// let takes in that a message neither waits nor runs any more.
func (w *worker) let(h *held) {
	w.schedule.let(h.Lane())
	if w.suspect(h) {
		w.suspects--
	}
}

func (w *worker) start(h *held, now time.Time) {
	h.context, h.cancel = context.WithCancelCause(w.handlers)
	h.expiry = time.AfterFunc(h.ends.Sub(now), func() { h.cancel(outbox.ErrLeaseLost) })
	h.started = now
	w.running[h] = struct{}{}
	w.renewBy(h.ends.Add(-h.lease * 2 / 3))
	go w.perform(h)
}

// perform runs a handler in a goroutine of its own, whose last act is to send the event, however the handler or what is told of it ends.
func (w *worker) perform(h *held) {
	a := attempt{Handler: h.handler, message: h.Message}
	a.fail(errGoexit)
	ctx := h.context
	var done time.Time
	var interrupted bool
	defer func() { w.events <- func() { w.finish(h, a.outcome, interrupted, done) } }()
	defer func() { w.observer.HandlerDone(ctx, h.Message, a.outcome, done.Sub(h.started)) }()
	defer func() {
		a.doubt()
		interrupted = a.interrupted(context.Cause(h.context))
		done = time.Now()
	}()
	defer func() {
		if problem := recover(); problem != nil {
			err := fmt.Errorf("handler panicked: %v", problem) // which may end the goroutine
			a.fail(err)
			w.log.Error("handler panicked", "message", h.Message, "panic", w.box.Redacted(err.Error()), "stack", string(debug.Stack()))
		}
	}()
	ctx = w.observer.HandlerStarting(ctx, h.Message)
	a.run(ctx)
}

// An attempt is one run of a handler. Its outcome is there from the start, for a handler that neither returns nor panics.
type attempt struct {
	Handler
	message     outbox.Message
	outcome     outbox.Outcome
	reconciling bool // so far nothing was performed, and failing says nothing about earlier attempts
	late        bool // Do ended after its Timeout
}

// fail is the outcome of a handler that ended with an error, or as if with one.
func (a *attempt) fail(err error) {
	if a.reconciling {
		err = outbox.Unknown(fmt.Errorf("reconcile: %w", err))
	}
	a.outcome = outbox.OutcomeOf(err)
}

// interrupted says whether the handler failed because its context was ended for a reason that is not the message's: it is given back.
func (a *attempt) interrupted(cause error) bool {
	verdict := a.outcome.Verdict()
	failed := verdict == outbox.VerdictFailed || a.reconciling && verdict == outbox.VerdictUnknown
	return failed && (cause == outbox.ErrStopping || cause == outbox.ErrPaused || cause == outbox.ErrRevoked)
}

func (a *attempt) run(ctx context.Context) {
	if a.message.Unsure && a.Reconcile != nil && !a.reconcile(ctx) {
		return
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	defer func() { a.late = context.Cause(ctx) == ErrTimeout }() // however Do ends
	a.outcome = a.do(ctx, a.message)
}

// doubt makes a failure after the Timeout an Unknown outcome where the kind asks for that.
func (a *attempt) doubt() {
	if a.UnknownOnTimeout && a.late && a.outcome.Verdict() == outbox.VerdictFailed {
		a.outcome = outbox.OutcomeOf(outbox.Unknown(errors.New(a.outcome.Reason())))
	}
}

// reconcile asks what became of an earlier attempt and says whether the message is to be performed.
func (a *attempt) reconcile(ctx context.Context) bool {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	a.reconciling = true
	a.fail(errGoexit)
	became, err := a.Reconcile(ctx, a.message)
	switch {
	case err != nil:
		a.fail(err)
	case became == Delivered:
		a.outcome = outbox.Delivered()
	case became == Failed:
		a.reconciling = false
		a.fail(errGoexit)
		return true
	default:
		a.fail(errStillUnknown)
	}
	return false
}

// bounded is ctx with the kind's timeout.
func (h Handler) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, h.Timeout, ErrTimeout)
}
