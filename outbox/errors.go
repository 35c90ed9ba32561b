package outbox

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels. Each says whether trying again can help.
var (
	// ErrInvalid: an argument was refused before any statement was sent; the caller's transaction is untouched. Not retryable.
	// The error is an *InvalidError, or several, that name the fields.
	ErrInvalid = errors.New("invalid")
	// ErrKeyConflict: the key is taken by a message with other content. Not retryable; the caller's transaction can go on.
	// The error is a *KeyConflictError that lists every conflicting effect.
	ErrKeyConflict = errors.New("key is taken by a message with other content")
	// ErrNotFound: no such message in this scope. Not retryable.
	ErrNotFound = errors.New("no such message in this scope")
	// ErrSchemaTooOld: the tables are older than this program needs. Retry after the migration.
	ErrSchemaTooOld = errors.New("schema is too old")
	// ErrSchemaTooNew: the tables are newer than this program works with. Not retryable; run a newer program.
	ErrSchemaTooNew = errors.New("schema is too new")
	// ErrUnidentified: the box requires a credential and none was given, or no worker has that name and secret. Not retryable.
	ErrUnidentified = errors.New("worker is not identified")
	// ErrNotPermitted: the worker's credential is not for this consumer or tenant, which the error names. Not retryable.
	ErrNotPermitted = errors.New("worker is not permitted")
)

// Causes of a handler's context and of a Renewal. None of them says that the effect failed.
var (
	// ErrLeaseLost: the lease ended or another worker has the message. Do not perform the effect, do not settle.
	ErrLeaseLost = errors.New("lease lost")
	// ErrCancelled: an operator cancelled the message. Do not perform the effect, do not settle.
	ErrCancelled = errors.New("message cancelled")
	// ErrPaused: an operator paused the lane and asks running handlers to stop. The lease is still held and should be released.
	ErrPaused = errors.New("lane paused")
	// ErrStopping: the sender stops and could wait no longer. The message is given back and will be performed again.
	ErrStopping = errors.New("sender stopping")
	// ErrRevoked: the worker's credential was revoked. The message is given back and will be performed by another worker. It is also the error of
	// calls under such a credential; not retryable.
	ErrRevoked = errors.New("worker revoked")
)

// An InvalidError names one refused argument; it is ErrInvalid. A call reports every problem at once: errors.As finds the first, the
// wrapped error's Unwrap() []error has all.
type InvalidError struct {
	// Index is the place in a batch, 0 outside of one.
	Index int
	// Field is the Go name of the field or argument.
	Field string
	// Problem says what is wrong and which bound holds, without the refused text.
	Problem string
	// Batch says that the call had a batch.
	Batch bool
}

func (e *InvalidError) Error() string {
	if e.Batch {
		return fmt.Sprintf("[%d] %s %s", e.Index, e.Field, e.Problem)
	}
	return e.Field + " " + e.Problem
}

// Is makes an InvalidError ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// A KeyConflictError lists the effects whose key is taken by a message with other content; it is ErrKeyConflict. Nothing of that content
// is told.
type KeyConflictError struct {
	Conflicts []Conflict
}

// A Conflict is one effect that was not stored.
type Conflict struct {
	// Index is the place in the batch, 0 for Enqueue.
	Index                 int
	Tenant, Consumer, Key string
	// ID and State are those of the message that holds the key.
	ID    int64
	State State
}

func (e *KeyConflictError) Error() string {
	return ErrKeyConflict.Error() + ": " + listed(len(e.Conflicts), func(i int) string {
		return fmt.Sprintf("%q", e.Conflicts[i].Key)
	})
}

// Is makes a KeyConflictError ErrKeyConflict.
func (e *KeyConflictError) Is(target error) bool { return target == ErrKeyConflict }

// A SettleUnknownError says that a settle was sent and its answer did not come back: it may or may not have been recorded. Settle the
// same outcome again until the lease ends, and never perform the effect again under this lease. If it had been recorded, the repeated
// settle answers StaleLease with Recorded.
type SettleUnknownError struct {
	Message Message
	Outcome Outcome
	// Others counts further messages of the same statement; their results say SettleUnknown too.
	Others int
	Err    error
}

func (e *SettleUnknownError) Error() string {
	if e.Others > 0 {
		return fmt.Sprintf("settle of message %d and %d others as %s is unknown: %v", e.Message.ID, e.Others, e.Outcome.Verdict(), e.Err)
	}
	return fmt.Sprintf("settle of message %d as %s is unknown: %v", e.Message.ID, e.Outcome.Verdict(), e.Err)
}

func (e *SettleUnknownError) Unwrap() error { return e.Err }

// listed keeps the text of an error with a thousand parts readable.
func listed(n int, text func(i int) string) string {
	const shown = 10
	parts := make([]string, 0, shown+1)
	for i := range min(n, shown) {
		parts = append(parts, text(i))
	}
	if n > shown {
		parts = append(parts, fmt.Sprintf("and %d more", n-shown))
	}
	return strings.Join(parts, "; ")
}

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbox: %s: %w", verb, err)
}
