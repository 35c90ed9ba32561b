// Package contest measures products that do the same work on the same server, by turns.
package contest

import (
	"context"
	"time"
)

// A Drainer performs messages that are there already.
type Drainer interface {
	// Name and Settings say what it is and how it is set up, and by whose advice.
	Name() string
	Settings() string
	// Open makes its tables in an empty database.
	Open(ctx context.Context, dsn string) error
	// Fill empties its tables and puts in so many messages, in the quickest way that it has.
	Fill(ctx context.Context, messages int) error
	// Drain performs them with a handler that does nothing, and returns when the last is recorded as done.
	Drain(ctx context.Context, messages int) error
	Close(ctx context.Context) error
}

// A Usage is what a piece of work took.
type Usage struct {
	Messages int
	Wall     time.Duration
	Client   time.Duration // of a CPU, in this process
	Server   time.Duration // of CPUs, in all processes of the server
	WAL      int64         // bytes
}

// Rate is messages a second.
func (u Usage) Rate() float64 { return float64(u.Messages) / u.Wall.Seconds() }

// Each is the usage of one message, of CPU time.
func (u Usage) Each(cpu time.Duration) time.Duration { return cpu / time.Duration(u.Messages) }
