package ledger

import (
	"errors"
	"fmt"
)

// Sentinels. Each says whether trying again can help. Refused arguments are outbox.ErrInvalid.
var (
	// ErrConflict: the key is claimed for other content. Not retryable; the caller's transaction can go on. The error is a *ConflictError.
	ErrConflict = errors.New("key is claimed for other content")
	// ErrStale: the claim is not its holder's any more: it was ended before, or somebody took it over. Nothing was changed. Not retryable: roll back
	// what the transaction did on account of the claim. Find tells how the key stands.
	ErrStale = errors.New("claim is stale")
	// ErrNotFound: nobody has claimed the key, or its claim was purged. Not retryable.
	ErrNotFound = errors.New("no such claim")
)

// A ConflictError names the key that is claimed for other content; it is ErrConflict. Nothing of that content is told.
type ConflictError struct {
	Tenant, Scope, Key string
	// State and Epoch are those of the claim that has the key.
	State State
	Epoch int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %q in %q", ErrConflict, e.Key, e.Scope)
}

// Is makes a ConflictError ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ledger: %s: %w", verb, err)
}
