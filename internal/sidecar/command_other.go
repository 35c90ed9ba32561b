//go:build !unix

package sidecar

import (
	"context"
	"errors"
	"io"

	"github.com/fencepost-go/fencepost/outbox"
)

var errNoGroups = errors.New("this system has no process groups to end a command by")

// A Command cannot be made on this system.
type Command struct{}

// New refuses.
func New(Config) (*Command, error) { return nil, errNoGroups }

// Unguarded is never closed.
func (*Command) Unguarded() <-chan struct{} { return nil }

// Close does nothing.
func (*Command) Close() {}

// Do refuses.
func (*Command) Do(context.Context, outbox.Message) (string, error) {
	return "", outbox.Unavailable(errNoGroups)
}

// Stand does nothing.
func Stand(io.Reader) {}
