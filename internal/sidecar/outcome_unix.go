//go:build unix

package sidecar

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/outbox"
)

// outcome is what the exit of a command says; interrupted, if not nil, is why it was ended.
func (c *Command) outcome(state *os.ProcessState, interrupted error, errors *tail) error {
	if state.Success() {
		return nil
	}
	how := state.String()
	if interrupted != nil {
		how = interrupted.Error() + ": " + how
	}
	err := &failure{reason(how, errors.text(c.redact, bounds.Reason))}
	switch state.ExitCode() {
	case ExitPermanent:
		return outbox.Permanent(err)
	case ExitUnavailable:
		return outbox.Unavailable(err)
	default:
		return err
	}
}

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// reason begins with the last line that the command printed, since of a message that goes on only the beginning is kept.
func reason(how, printed string) string {
	if printed == "" {
		return how
	}
	last := printed[strings.LastIndexByte(printed, '\n')+1:]
	text := how + ": " + end(last, bounds.Reason-len(how)-2)
	if room := bounds.Reason - len(text) - 1; last != printed && room > 0 {
		text += "\n" + end(printed, room)
	}
	return text
}

// notStarted is the outcome of a message whose command could not be started: nothing was reached. Only a message that is too large for the
// system's bounds is one for itself, which must not hold up the others.
func notStarted(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return err
	}
	return outbox.Unavailable(err)
}
