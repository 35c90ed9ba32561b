package janitor

import (
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
	old   outbox.Cursor // the last old row
	begun time.Time     // when it last went to the front; zero before the first time
	whole bool          // it goes over all rows
	batch int           // at most Config.Batch, fewer after a timeout
}

// errBusy says that another process is purging.
var errBusy = errors.New("another janitor is at it")

// tick goes on with the walk until nothing is left to do, telling what each step did. After an error a walk over all rows goes on where it was.
// At its first step a tick gives way to another janitor; later on the two take turns, or a walk that begins anew each time would never end.
func (w *walk) tick(ctx context.Context, c Config, first bool, did func(n int)) error {
	if now := time.Now(); w.begun.IsZero() || now.Sub(w.begun) >= startOver {
		w.place, w.old, w.begun, w.whole = outbox.Cursor{}, outbox.Cursor{}, now, true
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
			return err
		case swept.Busy && first:
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
		first = false
		w.place = swept.Next
		if idle++; swept.Count > 0 {
			idle, w.old = 0, w.place
			did(swept.Count)
			if err := rest(ctx, c.Pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// step runs one statement, again with half of the rows when it times out.
func (w *walk) step(ctx context.Context, c Config) (outbox.Sweep, error) {
	for {
		swept, err := w.once(ctx, c)
		if !timedOut(err) || ctx.Err() != nil || w.batch == 1 {
			return swept, err
		}
		w.batch /= 2
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
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
