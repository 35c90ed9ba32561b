package sender

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

const (
	firstReconnect = time.Second
	lastReconnect  = 30 * time.Second
	deafReconnect  = 5 * time.Minute
)

// listen starts what the configuration asks for to hear of commits in other processes, and to tell them of ours. It ends with ctx.
func (w *worker) listen(ctx context.Context) {
	if w.config.Notify {
		w.hinters.Go(func() { _ = w.box.RunNotifier(ctx) })
	}
	if w.config.Listen && !w.once { // which waits for nothing
		w.hinters.Go(func() { w.hear(ctx) })
	}
}

// hear keeps a listening connection. Hints are lost while there is none, which the store makes up for with a hint at each connect; the poll
// serves meanwhile.
func (w *worker) hear(ctx context.Context) {
	deaf, failures := false, 0
	for wait := firstReconnect; ; wait = min(2*wait, lastReconnect) {
		began := time.Now()
		err := w.hearOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, db.ErrNoListener):
			w.log.Error("cannot listen; the poll serves", "error", err)
			return
		case errors.Is(err, db.ErrDeafListener):
			if !deaf {
				w.log.Warn("hints do not arrive, as behind a transaction pooler; the poll serves", "error", err)
			}
			deaf, wait = true, deafReconnect
		default:
			if time.Since(began) > lastReconnect {
				wait, failures = firstReconnect, 0
			}
			if failures++; failures == 2 { // one is a connection that broke
				w.log.Warn("cannot listen for now; the poll serves", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait + rand.N(wait/2)):
		}
	}
}

// hearOnce listens until the connection breaks.
func (w *worker) hearOnce(ctx context.Context) error {
	up := false
	err := w.box.Store().Listen(ctx, func() {
		if !up {
			up = true
			w.observer.Listening(w.handlers, true)
		}
		w.hint()
	})
	if up {
		w.observer.Listening(w.handlers, false)
	}
	return err
}

// hint wakes the loop and never blocks.
func (w *worker) hint() {
	select {
	case w.hinted <- struct{}{}:
	default: // it will look anyway
	}
}
