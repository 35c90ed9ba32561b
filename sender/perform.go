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
		case len(w.running.all) < w.config.Slots:
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
	h.started, h.outcome = now, goexit
	w.running.add(h)
	w.renewBy(h.ends.Add(-h.lease * 2 / 3))
	if w.idle > 0 {
		w.idle--
		w.starts <- h
	} else {
		go w.performAll(h)
	}
}

// performAll performs a message, and then those that the loop sends it; in a goroutine for each the stack would grow anew. A handler, and what is told
// of it, may end the goroutine.
func (w *worker) performAll(h *held) {
	defer func() {
		if h != nil {
			w.events <- func() { w.finish(h) }
		}
	}()
	for h != nil {
		w.perform(h)
		done := h
		h = nil
		w.events <- func() {
			w.idle++
			w.finish(done)
		}
		h = <-w.starts
	}
}

// perform runs a handler.
func (w *worker) perform(h *held) {
	ctx := h.context
	defer func() { w.observer.HandlerDone(ctx, h.Message, h.outcome, h.done.Sub(h.started)) }()
	defer func() {
		h.doubt()
		h.interrupted = h.isInterrupted(context.Cause(h.context))
		h.done = time.Now()
	}()
	defer func() {
		if problem := recover(); problem != nil {
			err := fmt.Errorf("handler panicked: %v", problem) // which may end the goroutine
			h.fail(err)
			w.log.Error("handler panicked", "message", h.Message, "panic", w.box.Redacted(err.Error()), "stack", string(debug.Stack()))
		}
	}()
	ctx = w.observer.HandlerStarting(ctx, h.Message)
	h.attempt(ctx)
}

// goexit is the outcome of a handler that neither returns nor panics.
var goexit = outbox.OutcomeOf(errGoexit)

// fail is the outcome of a handler that ended with an error, or as if with one.
func (h *held) fail(err error) {
	if h.reconciling {
		err = outbox.Unknown(fmt.Errorf("reconcile: %w", err))
	}
	h.outcome = outbox.OutcomeOf(err)
}

// isInterrupted says whether the handler failed because its context was ended for a reason that is not the message's: it is given back.
func (h *held) isInterrupted(cause error) bool {
	verdict := h.outcome.Verdict()
	failed := verdict == outbox.VerdictFailed || h.reconciling && verdict == outbox.VerdictUnknown
	return failed && (cause == outbox.ErrStopping || cause == outbox.ErrPaused || cause == outbox.ErrRevoked)
}

func (h *held) attempt(ctx context.Context) {
	if h.Unsure && h.handler.Reconcile != nil && !h.reconcile(ctx) {
		return
	}
	ctx, cancel := h.handler.bounded(ctx)
	defer cancel()
	defer func() { h.late = context.Cause(ctx) == ErrTimeout }() // however Do ends
	h.outcome = h.handler.do(ctx, h.Message)
}

// doubt makes a failure after the Timeout an Unknown outcome where the kind asks for that.
func (h *held) doubt() {
	if h.handler.UnknownOnTimeout && h.late && h.outcome.Verdict() == outbox.VerdictFailed {
		h.outcome = outbox.OutcomeOf(outbox.Unknown(errors.New(h.outcome.Reason())))
	}
}

// reconcile asks what became of an earlier attempt and says whether the message is to be performed.
func (h *held) reconcile(ctx context.Context) bool {
	ctx, cancel := h.handler.bounded(ctx)
	defer cancel()
	h.reconciling = true
	h.fail(errGoexit)
	became, err := h.handler.Reconcile(ctx, h.Message)
	switch {
	case err != nil:
		h.fail(err)
	case became == Delivered:
		h.outcome = outbox.Delivered()
	case became == Failed:
		h.reconciling = false
		h.outcome = goexit
		return true
	default:
		h.fail(errStillUnknown)
	}
	return false
}

// bounded is ctx with the kind's timeout.
func (h Handler) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, h.Timeout, ErrTimeout)
}
