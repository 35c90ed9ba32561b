package webhook

import (
	"errors"
	"fmt"
)

// Why a request does not verify. Not retryable as it is; the error is a *VerifyError.
var (
	// ErrMissingHeader: one of the three headers is not there.
	ErrMissingHeader = errors.New("is missing")
	// ErrMalformed: a header is there twice, or is not what the specification says.
	ErrMalformed = errors.New("is malformed")
	// ErrTooOld: it was signed longer ago than is tolerated, or one of the two clocks is wrong.
	ErrTooOld = errors.New("is too old")
	// ErrTooNew: it was signed further in the future than is tolerated: one of the two clocks is wrong.
	ErrTooNew = errors.New("is too new")
	// ErrNoMatch: no signature is of these bytes under one of the secrets.
	ErrNoMatch = errors.New("matches no secret")
)

// Errors that are not about a signature.
var (
	// ErrRefusedAddress: the host resolves to an address that no webhook may be sent to. Not retryable: the message is dead at once.
	ErrRefusedAddress = errors.New("address is refused")
	// ErrUnknownOrigin is for an Origins to say that a request is nobody's.
	ErrUnknownOrigin = errors.New("origin is unknown")
)

// A VerifyError says which header was refused and why; it is one of ErrMissingHeader, ErrMalformed, ErrTooOld, ErrTooNew and ErrNoMatch. It has nothing of
// what the header said.
type VerifyError struct {
	Header string
	Reason error
}

func (e *VerifyError) Error() string { return fmt.Sprintf("%s %v", e.Header, e.Reason) }

func (e *VerifyError) Unwrap() error { return e.Reason }

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("webhook: %s: %w", verb, err)
}
