// Package contest measures products that do the same work on the same server, by turns.
package contest

import (
	"context"
	"errors"
	"time"
)

// ErrAbsent is wrapped by Open where a contender cannot take part on this machine. It is left out, with a line that says why.
var ErrAbsent = errors.New("left out")

// A Contender is a product, set up in one way.
type Contender interface {
	// Name says which product it is, Settings how it is set up, and by whose advice.
	Name() string
	Settings() string
	// Open makes its tables in an empty database.
	Open(ctx context.Context, dsn string) error
	Close(ctx context.Context) error
}

// A Drainer performs messages that are there already.
type Drainer interface {
	Contender
	// Fill empties its tables and puts in so many messages, in the quickest way that it has.
	Fill(ctx context.Context, messages int) error
	// Drain performs them with a handler that does nothing, and returns when the last is recorded as done.
	Drain(ctx context.Context, messages int) error
}

// A Streamer performs messages while others are put in.
type Streamer interface {
	Contender
	// Fill as a Drainer's.
	Fill(ctx context.Context, messages int) error
	// Stream has so many producers put in one message a transaction for so long, with a handler that does nothing, and says how many those were once
	// the last of them is recorded as done.
	Stream(ctx context.Context, producers int, span time.Duration) (messages int, err error)
}

// A Pacer performs messages as they come.
type Pacer interface {
	Contender
	// Fill as a Drainer's.
	Fill(ctx context.Context, messages int) error
	// Pace puts in a message at each of these times after a start, a transaction each, and gives what passed from each one's commit to the start of
	// its handler.
	Pace(ctx context.Context, times []time.Duration) ([]time.Duration, error)
}

// A Usage is what a piece of work took.
type Usage struct {
	Messages int
	Wall     time.Duration
	Client   time.Duration // of a CPU, in this process and its children
	Server   time.Duration // of CPUs, in all processes of the server
	WAL      int64         // bytes
}

// Rate is messages a second.
func (u Usage) Rate() float64 { return float64(u.Messages) / u.Wall.Seconds() }

// Micros is CPU time in microseconds a message.
func (u Usage) Micros(cpu time.Duration) float64 {
	return float64(cpu) / float64(time.Microsecond) / float64(u.Messages)
}
