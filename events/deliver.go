package events

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
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
	var again failures
	for _, s := range b.handlers {
		if !s.takes(event) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.handle(ctx, s, event); err != nil {
			again = append(again, s.name+": "+err.Error())
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
		err = b.inTx(ctx, s, e)
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

func (b *Bus) inTx(ctx context.Context, s subscriber, e Event) error {
	return b.log.store.Transact(ctx, func(tx db.Tx) error {
		switch fresh, err := b.record(ctx, tx, s, e, db.ClaimCompleted, ""); {
		case err != nil:
			return err
		case !fresh:
			return errHasReceipt
		}
		return caught(func() error { return s.inTx(ctx, tx, e) })
	})
}

func (b *Bus) beside(ctx context.Context, s subscriber, e Event) error {
	has := false
	err := b.log.store.Transact(ctx, func(tx db.Tx) error {
		digest := e.digest()
		rows, err := b.log.store.FindClaims(ctx, tx, db.FindClaimsParams{
			Tenants: []string{e.Tenant}, Scopes: []string{b.scope(s.name)}, Keys: []string{e.ID}, Digests: [][]byte{digest[:]},
		})
		has = len(rows) > 0
		return err
	})
	if err != nil || has {
		return err
	}
	if err := caught(func() error { return s.beside(ctx, e) }); err != nil {
		return err
	}
	return b.log.store.Transact(ctx, func(tx db.Tx) error {
		_, err := b.record(ctx, tx, s, e, db.ClaimCompleted, "")
		return err
	})
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

// caught turns a panic into an error.
func caught(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the handler panicked: %v", cause)
		}
	}()
	return do()
}
