package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fencepost-go/fencepost/outbox"
)

// Exit codes; the help of the root command documents them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitNotDone = 3
)

// run is the program without its process. It prints an error as one line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil {
		err = ctx.Err() // whatever else failed, failed for that
	}
	fmt.Fprintln(stderr, "fencepost: "+printable(explain(err)))
	switch {
	case errors.As(err, new(*usageError)), errors.Is(err, outbox.ErrInvalid):
		return exitUsage
	case errors.As(err, new(*notDoneError)):
		return exitNotDone
	default:
		return exitFailed
	}
}

// A usageError says that the command line or the configuration is wrong. It never holds the value of an argument: one that went to
// the wrong place may be a connection string with a password.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// A notDoneError says that the command ran to its end and that something it was asked for was not there to be done.
type notDoneError struct{ text string }

func (e *notDoneError) Error() string { return e.text }

func notDonef(format string, args ...any) error {
	return &notDoneError{fmt.Sprintf(format, args...)}
}
