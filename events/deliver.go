package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// Reject is what a handler of a bus answers to an event that it refuses for good: a business error. The reason is recorded, what the handler
// wrote is rolled back, and it is not asked again.
func Reject(reason string) error { return rejection(reason) }

type rejection string

func (r rejection) Error() string { return "rejected: " + string(r) }

// errHasReceipt ends the transaction of a handler that has one.
var errHasReceipt = errors.New("the handler has a receipt")

// deliver is the bus's handler of a message.
func (b *Bus) deliver(ctx context.Context, m outbox.Message) error {
	event, err := b.log.Source(ctx, m)
	if errors.Is(err, ErrSourceNotFound) {
		return outbox.Permanent(err)
	}
	if err != nil {
		return err
	}
	if m.Key != derivedKey(b.name, event.ID, 0) {
		// Retention would not know its receipts, and a handler that has run could be run again.
		return outbox.Permanent(fmt.Errorf("the message has not the key that ToBus gives: %q", m.Key))
	}
	var again failures
	for _, s := range b.handlers {
		if !s.takes(event) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Whatever a handler does, the next one has its turn, with an event of its own.
		text, err := contained(func() (string, error) {
			if err := b.handle(ctx, s, event.clone()); err != nil {
				return cmp.Or(err.Error(), "an error without text"), nil
			}
			return "", nil
		})
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			again = append(again, failure{s.name, text})
		}
	}
	if len(again) > 0 {
		return again
	}
	return nil
}

// handle lets one handler have an event, unless it has a receipt.
func (b *Bus) handle(ctx context.Context, s subscriber, e Event) error {
	var err error
	if s.inTx != nil {
		err = b.within(ctx, func(ctx context.Context, begun func()) error { return b.inTx(ctx, begun, s, e) })
	} else {
		err = b.beside(ctx, s, e)
	}
	var rejected rejection
	switch {
	case errors.Is(err, errHasReceipt):
		return nil
	case errors.As(err, &rejected):
		return b.log.store.Transact(ctx, func(tx db.Tx) error {
			_, err := b.record(ctx, tx, s, e, db.ClaimRejected, b.reason(rejected))
			return err
		})
	}
	return err
}

// within gives what follows the call of begun its time, and says so when that is out.
func (b *Bus) within(ctx context.Context, do func(ctx context.Context, begun func()) error) error {
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(math.MaxInt64, func() { cancel(sender.ErrTimeout) })
	defer timer.Stop()
	err := do(bounded, func() { timer.Reset(b.timeout) })
	if err != nil && context.Cause(bounded) == sender.ErrTimeout {
		return fmt.Errorf("%w after %v: %w", sender.ErrTimeout, b.timeout, err)
	}
	return err
}

func (b *Bus) inTx(ctx context.Context, begun func(), s subscriber, e Event) error {
	return b.log.store.Transact(ctx, func(tx db.Tx) error {
		begun()
		fresh, err := b.record(ctx, tx, s, e, db.ClaimCompleted, "")
		if err == nil && !fresh {
			err = b.receipt(ctx, tx, s, e)
		}
		if err != nil {
			return err
		}
		return s.inTx(ctx, tx, e)
	})
}

func (b *Bus) beside(ctx context.Context, s subscriber, e Event) error {
	err := b.log.store.Transact(ctx, func(tx db.Tx) error { return b.receipt(ctx, tx, s, e) })
	if err != nil {
		return err
	}
	err = b.within(ctx, func(ctx context.Context, begun func()) error {
		begun()
		return s.beside(ctx, e)
	})
	if err != nil {
		return err
	}
	return b.log.store.Transact(ctx, func(tx db.Tx) error {
		_, err := b.record(ctx, tx, s, e, db.ClaimCompleted, "")
		return err
	})
}

// receipt is errHasReceipt when the handler has one for this very event. Another claim under the same key (an id that was used again after
// the event was purged) is no receipt, and nobody knows what to do then.
func (b *Bus) receipt(ctx context.Context, tx db.Tx, s subscriber, e Event) error {
	digest := e.digest()
	rows, err := b.log.store.FindClaims(ctx, tx, db.FindClaimsParams{
		Tenants: []string{e.Tenant}, Scopes: []string{b.scope(s.name)}, Keys: []string{e.ID}, Digests: [][]byte{digest[:]},
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	if ended := rows[0].State == db.ClaimCompleted || rows[0].State == db.ClaimRejected; !ended || !rows[0].SameDigest {
		return fmt.Errorf("the ledger has a claim of %q under the id %q that is no receipt of this event", b.scope(s.name), e.ID)
	}
	return errHasReceipt
}

// record writes a handler's receipt; fresh is false when it has one.
func (b *Bus) record(ctx context.Context, tx db.Tx, s subscriber, e Event, state int16, reason string) (fresh bool, err error) {
	digest := e.digest()
	rows, err := b.log.store.RecordClaim(ctx, tx, db.RecordClaimParams{
		Tenant: e.Tenant, Scope: b.scope(s.name), Key: e.ID, Digest: digest[:], State: state, Reason: reason,
	})
	return len(rows) > 0, err
}

// reason is a rejection fit to be stored.
func (b *Bus) reason(r rejection) string {
	text := string(r)
	if strings.TrimSpace(text) == "" {
		text = "(no reason given)"
	}
	return b.log.box.Redacted(text)
}
