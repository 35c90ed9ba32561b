package sender

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

const touchEvery = 10 * time.Second

// errRefused marks what trying again cannot help.
var errRefused = errors.New("refused to start")

// begin checks what has to be right before the first lease, and registers the worker. A database that does not answer, or is
// read-only, is waited for, except by a RunOnce.
func (w *worker) begin(ctx context.Context) error {
	for _, step := range []func(context.Context) error{w.box.CheckSchema, w.checkRole, w.verify, w.identify, w.register} {
		for {
			err := w.bounded(ctx, step)
			if err == nil {
				break
			}
			if w.once || ctx.Err() != nil || refused(err) {
				return err
			}
			w.outage.failed(starting, err, time.Now())
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(w.outage.next)):
			}
		}
	}
	w.outage.worked(starting, time.Now())
	w.touchAt = time.Now().Add(touchEvery)
	return nil
}

func (w *worker) bounded(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.shortest/3)
	defer cancel()
	return step(ctx)
}

func refused(err error) bool {
	for _, final := range []error{errRefused, outbox.ErrUnidentified, outbox.ErrRevoked, outbox.ErrNotPermitted, outbox.ErrSchemaTooOld, outbox.ErrSchemaTooNew, outbox.ErrInvalid, db.ErrNoSchema, db.ErrDenied, db.ErrEncoding} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

func (w *worker) checkRole(ctx context.Context) error {
	role, err := w.box.CheckRole(ctx)
	if err != nil {
		return err
	}
	problems := strings.Join(role.Problems(), ", ")
	if problems == "" {
		return nil
	}
	if w.config.RequireRole {
		return fmt.Errorf("%w: the database role of this process %s", errRefused, problems)
	}
	w.log.Warn("the database role of this process is not one for a sender", "problem", problems)
	return nil
}

func (w *worker) verify(ctx context.Context) error {
	if w.config.Verify == nil {
		return nil
	}
	if err := w.config.Verify(ctx); err != nil {
		return fmt.Errorf("%w: verify: %w", errRefused, err)
	}
	return nil
}

func (w *worker) register(ctx context.Context) (err error) {
	w.id, err = w.box.RegisterWorker(ctx, w.config.Name, host())
	return err
}

// touch tells operators that this worker is alive, and looks whether it is still let in.
func (w *worker) touch(now time.Time) {
	if w.stop.begun {
		return
	}
	if now.Before(w.touchAt) {
		w.look(w.touchAt)
		return
	}
	if !w.may(touching, now) {
		return
	}
	id, began := w.id, now
	var round *round[bool]
	w.call(touching, w.shortest/3, func(ctx context.Context) (err error) {
		var known bool
		known, round, err = w.team.touches.answer(ctx, w, id, w.touchAt.Add(-touchEvery), false)
		if err == nil && !known {
			id, err = w.box.RegisterWorker(ctx, w.config.Name, host())
		}
		if err == nil {
			err = w.lookUp(ctx)
		}
		return err
	}, func(err error) {
		if err == nil {
			w.lookedUp(began)
			w.outage.worked(touching, time.Now())
			w.id, w.touchAt = id, round.began.Add(touchEvery)
			w.team.touches.willing(w, id)
		}
	})
}
