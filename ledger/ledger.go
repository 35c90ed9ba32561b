package ledger

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// Bounds.
const (
	// DefaultHold is how long a claim is its holder's unless Config.Hold says otherwise.
	DefaultHold = time.Minute
	// DefaultMaxResult is the largest result in bytes unless Config.MaxResult says otherwise.
	DefaultMaxResult = 64 << 10

	shortestHold  = time.Second
	longestHold   = 24 * time.Hour
	largestResult = bounds.LargestPayload // a CHECK of the schema too
)

// Config of a Ledger. The zero Config is a good one.
type Config struct {
	// Hold is how long a claim is its holder's alone, by the database's clock. It should be longer than the work ever takes. Default DefaultHold,
	// between 1 s and 24 h.
	Hold time.Duration
	// MaxResult is the largest result in bytes. Default DefaultMaxResult, at most 1 MiB.
	MaxResult int
}

// A Ledger claims keys and keeps what came of them. It keeps no goroutine and holds no connection; its methods may be called from several goroutines
// at once.
type Ledger struct {
	box    *outbox.Box
	store  db.Store
	config Config
}

// New makes a Ledger over a box, whose Config.Redact reasons pass through, reporting every problem of the Config at once as outbox.ErrInvalid. It sends
// no statement.
func New(box *outbox.Box, config Config) (*Ledger, error) {
	var found refusal.Problems
	if box == nil {
		found.Add("box", "is nil")
	}
	if config.Hold == 0 {
		config.Hold = DefaultHold
	}
	if config.MaxResult == 0 {
		config.MaxResult = DefaultMaxResult
	}
	found.Lasting("Hold", config.Hold, shortestHold, longestHold)
	found.Between("MaxResult", config.MaxResult, 1, largestResult)
	if err := found.Err(); err != nil {
		return nil, failed("new", err)
	}
	return &Ledger{box: box, store: box.Store(), config: config}, nil
}

// Box is what the ledger was made over.
func (l *Ledger) Box() *outbox.Box { return l.box }

// Config is the ledger's, with every default filled in.
func (l *Ledger) Config() Config { return l.config }

// InTx runs fn in a transaction of the store's own and commits it: for claims that are committed before the work begins. An error or a panic of fn rolls back. Errors are
// those of fn or of the database; when a commit's answer is lost nobody knows whether it happened, and Find tells.
func (l *Ledger) InTx(ctx context.Context, fn func(tx db.Tx) error) error {
	return l.store.Transact(ctx, fn)
}
