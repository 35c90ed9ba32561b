package sender

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// trusted is for how long nobody need have looked at the credential for messages to be leased: three times as long as that usually takes.
const trusted = 3 * touchEvery

// identify verifies the credential, and that it is for all that the sender leases.
func (w *worker) identify(ctx context.Context) (err error) {
	if w.config.Credential.IsZero() {
		return nil
	}
	looked := time.Now()
	if w.identity, err = w.box.Identify(ctx, w.config.Credential); err != nil {
		return err
	}
	if err = w.identity.Permits(w.consumer.Name(), w.config.Scope); err == nil {
		w.trustedUntil = looked.Add(trusted)
		w.log.Info("credential verified")
	}
	return err
}

// lookUp looks at the credential again, in the round of another call.
func (w *worker) lookUp(ctx context.Context) error {
	if w.identity == nil {
		return nil
	}
	if err := w.identity.Check(ctx); err != nil {
		return err
	}
	return w.identity.Permits(w.consumer.Name(), w.config.Scope)
}

// lookedUp takes in that a look succeeded which began at the given time.
func (w *worker) lookedUp(began time.Time) { w.trustedUntil = began.Add(trusted) }

// shutOut says whether a call failed for the credential alone. That may be a lease which comes between a look and its answer.
func shutOut(err error) bool {
	return errors.Is(err, outbox.ErrRevoked) || errors.Is(err, outbox.ErrNotPermitted)
}

// revoke stops a worker that is not let in any more. Its handlers end at once; what they did nevertheless is recorded under its leases, since an
// effect that was performed and not recorded would be performed again.
func (w *worker) revoke(err error) {
	if w.revoked {
		return
	}
	w.revoked = true
	w.log.Error("the worker is shut out; it leases nothing more and gives back what it holds", "error", err)
	if w.beginStop(err); w.stop.err == nil {
		w.stop.err = err
	}
	for h := range w.running.all {
		h.cancel(outbox.ErrRevoked)
	}
}

// untrusted says whether the credential was not looked at for too long to lease anything.
func (w *worker) untrusted(now time.Time) bool {
	return w.identity != nil && !now.Before(w.trustedUntil)
}
