package events

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels. Each says whether trying again can help. Refused arguments are outbox.ErrInvalid.
var (
	// ErrConflict: the id is taken by another event. Not retryable; the caller's transaction can go on. The error is a *ConflictError.
	ErrConflict = errors.New("id is taken by another event")
	// ErrDerivation: the function of a subscription panicked, failed, or gave an effect that cannot be recorded. No statement was sent. Not
	// retryable before the function is mended. The error is a *DerivationError.
	ErrDerivation = errors.New("no effects can be derived")
	// ErrSourceNotFound: no event has both the position and the id that the message names, in its tenant: it was purged, or the message comes
	// from no event. Not retryable.
	ErrSourceNotFound = errors.New("source event not found")
	// ErrNoDecoder: no decoder of that type of event and result is registered. Not retryable.
	ErrNoDecoder = errors.New("no decoder is registered")
	// ErrCursorUnknown: the stream never had that place: the cursor comes from another store, or this one was restored from a copy that is
	// older than it. Not retryable: begin anew, from the oldest event or from the end, and reconcile what was missed.
	ErrCursorUnknown = errors.New("cursor is unknown to this stream")
	// ErrCursorExpired: events that follow the cursor were purged. Not retryable: begin anew, and reconcile what was missed.
	ErrCursorExpired = errors.New("cursor is expired")
	// ErrReaderMoved: the named reader does not stand where the caller thinks: another process reads under that name. Roll back.
	ErrReaderMoved = errors.New("reader stands elsewhere")
)

// A ConflictError lists the events whose id is taken by another event; it is ErrConflict.
type ConflictError struct {
	Conflicts []Conflict
}

// A Conflict is one event that was not stored.
type Conflict struct {
	// Index is the place in the call.
	Index      int
	Tenant, ID string
	// Position is that of the event that has the id.
	Position int64
}

func (e *ConflictError) Error() string {
	ids := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		ids[i] = fmt.Sprintf("%q", c.ID)
	}
	return ErrConflict.Error() + ": " + strings.Join(ids, ", ")
}

// Is makes a ConflictError ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// A DerivationError says which subscription could not derive effects from which event; it is ErrDerivation, and what it wraps.
type DerivationError struct {
	// Index is the place of the event in the call.
	Index        int
	Subscription string
	Err          error
}

func (e *DerivationError) Error() string {
	return fmt.Sprintf("subscription %q, event [%d]: %v", e.Subscription, e.Index, e.Err)
}

// Is makes a DerivationError ErrDerivation.
func (e *DerivationError) Is(target error) bool { return target == ErrDerivation }

func (e *DerivationError) Unwrap() error { return e.Err }

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("events: %s: %w", verb, err)
}
