package janitor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	startOver = time.Hour             // a walk begins at the front again
	idleSteps = 3                     // in a row without anything to do end a tick
	turn      = 50 * time.Millisecond // of another janitor
)

// A walk goes over the rows of one class, oldest first, step by step. A tick goes on where the last old row was found, and ends when some
// steps found none: what follows is younger. Not always, since ids and times are not in the same order everywhere, so that every hour a walk
// goes over all rows from the front.
type walk struct {
	class string
	sweep func(ctx context.Context, from outbox.Cursor, limit int) (outbox.Sweep, error)

	place outbox.Cursor // looked at up to here
	old   outbox.Cursor // the furthest old row
	begun time.Time     // when it last went to the front; zero before the first time
	whole bool          // it goes over all rows
	batch int           // at most Config.Batch, fewer after a timeout
}

// errBusy says that another process is purging.
var errBusy = errors.New("another janitor is at it")

// tick goes on with the walk until nothing is left to do, telling what each step did. After an error, or when another janitor is at it, a walk
// over all rows goes on where it was. A patient one waits for its turn instead: one that begins anew each time would never end.
func (w *walk) tick(ctx context.Context, c Config, patient bool, did func(n int)) error {
	if now := time.Now(); w.begun.IsZero() || now.Sub(w.begun) >= startOver {
		w.place, w.begun, w.whole = outbox.Cursor{}, now, true
	}
	if !w.whole {
		w.place = w.old
	}
	if w.batch *= 2; w.batch == 0 || w.batch > c.Batch {
		w.batch = c.Batch
	}
	for idle := 0; w.whole || idle < idleSteps; {
		swept, err := w.step(ctx, c)
		switch {
		case err != nil:
			if timedOut(err) && w.place == (outbox.Cursor{}) {
				w.whole = false // dead entries at the front; what is old further on need not wait until they can be cleaned up
			}
			return err
		case swept.Busy && !patient:
			return errBusy
		case swept.Busy:
			if err := rest(ctx, turn); err != nil {
				return err
			}
			continue
		case swept.Next == (outbox.Cursor{}) && swept.Count == 0:
			w.whole = false
			return nil
		}
		w.place = swept.Next
		if idle++; swept.Count > 0 {
			idle, w.old = 0, further(w.old, swept.Last)
			did(swept.Count)
		}
		if err := rest(ctx, c.Pause); err != nil {
			return err
		}
	}
	return nil
}

// further is the later of two places.
func further(a, b outbox.Cursor) outbox.Cursor {
	if cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) > 0 {
		return a
	}
	return b
}

// step runs one statement, again with half of the rows when it times out. One that then finds another at work has found itself, still running
// on the server.
func (w *walk) step(ctx context.Context, c Config) (outbox.Sweep, error) {
	for late := error(nil); ; w.batch /= 2 {
		swept, err := w.once(ctx, c)
		if late != nil && swept.Busy {
			return outbox.Sweep{}, late
		}
		if !timedOut(err) || ctx.Err() != nil || w.batch == 1 {
			return swept, err
		}
		late = err
	}
}

func (w *walk) once(ctx context.Context, c Config) (outbox.Sweep, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return w.sweep(ctx, w.place, w.batch)
}

func timedOut(err error) bool {
	return errors.Is(err, db.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// rest waits, so that others get their turn.
func rest(ctx context.Context, pause time.Duration) error {
	if pause == NoPause {
		return ctx.Err()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
