package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/schema"
)

// slowError is why a command gave up.
type slowError struct{ limit time.Duration }

func (e *slowError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// explain turns an error into one line that says what to do.
func explain(err error) string {
	var unreachable *pgconn.ConnectError
	var slow *slowError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &unreachable):
		return "cannot connect to the database: " + oneLine(unreachable.Unwrap()) + "; is the server up, and is the connection string right?"
	case errors.As(err, &slow):
		return slow.Error() + "; try a longer --timeout"
	case errors.Is(err, schema.ErrTooNew):
		return oneLine(err) + "; use a newer fencepost"
	case errors.Is(err, schema.ErrBlocked):
		return oneLine(err) + "; end those sessions or give a longer --lock-timeout, and run the command again"
	case errors.Is(err, db.ErrRetry):
		return oneLine(err) + "; another program keeps the database busy: run the command again"
	case denied(err):
		return oneLine(err) + "; the role of this connection lacks a right, and fencepost grants prints which role has it"
	default:
		return oneLine(err)
	}
}

// denied reports whether the database refused something for a missing right.
func denied(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42501"
}

// oneLine joins the lines of an error, each once: a connection that is tried on several ways fails on each.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
