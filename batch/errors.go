package batch

import (
	"errors"
	"fmt"
)

// Sentinels. Each says whether trying again can help. Refused arguments are outbox.ErrInvalid.
var (
	// ErrConflict: the key is taken by a batch that was created otherwise (a *ConflictError), a row by one with other content (a *RowConflictError), or
	// the key of OnComplete by a message.
	// Not retryable.
	ErrConflict = errors.New("taken by another")
	// ErrSealed: the batch takes no more rows: it was created to its end, or cancelled. Not retryable.
	ErrSealed = errors.New("batch is sealed")
	// ErrNotFound: no such batch in this scope. Not retryable.
	ErrNotFound = errors.New("no such batch in this scope")
	// ErrUnauthenticated is what the authoriser of a ProgressHandler returns for a request of nobody it knows: the answer is 401. Any other error of it
	// is 403.
	ErrUnauthenticated = errors.New("unauthenticated")
)

// A ConflictError names the batch that has the key; it is ErrConflict.
type ConflictError struct {
	Tenant, Consumer, Key string
	// ID is that of the batch that has the key.
	ID int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q is taken by batch %d, which was created with another target, kind, priority, age or effect at its end", e.Key, e.ID)
}

// Is makes a ConflictError ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// A RowConflictError names the first row that is not the one which stands in the batch; it is ErrConflict. The rows before it are stored.
type RowConflictError struct {
	Row     int
	Problem string
}

func (e *RowConflictError) Error() string { return fmt.Sprintf("row %d %s", e.Row, e.Problem) }

// Is makes a RowConflictError ErrConflict.
func (e *RowConflictError) Is(target error) bool { return target == ErrConflict }

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("batch: %s: %w", verb, err)
}
