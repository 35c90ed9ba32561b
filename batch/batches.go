package batch

import (
	"cmp"
	"math"
	"sync"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// Bounds.
const (
	// DefaultChunk is how many rows one transaction of Create stores unless Config.Chunk says otherwise.
	DefaultChunk = 500
	// MaxKey bounds the key of a batch, and that of the effect at its end, in bytes: the row's number, or the run's, goes behind it.
	MaxKey = 200
	// MaxRows bounds the rows of a batch.
	MaxRows = math.MaxInt32

	largestChunk = 1_000
	chunkBytes   = 4 << 20 // payload of one transaction, unless one row has more
	maxReason    = 1024    // of a rejected row; a CHECK of the schema too
)

// Config of Batches. The zero Config is a good one.
type Config struct {
	// Chunk is how many rows one transaction of Create stores. Default DefaultChunk, at most 1,000.
	Chunk int
}

// Batches creates batches and tells how they stand. It keeps no goroutine and holds no connection; its methods may be called from several goroutines at
// once.
type Batches struct {
	box    *outbox.Box
	store  db.Store
	config Config

	mu      sync.Mutex
	watched map[int64]*watched
}

// New makes Batches over a box, whose Config.Redact the reasons of rejected rows pass through, reporting every problem of the Config at once as
// outbox.ErrInvalid. It sends no statement.
func New(box *outbox.Box, config Config) (*Batches, error) {
	var found refusal.Problems
	if box == nil {
		found.Add("box", "is nil")
	}
	config.Chunk = cmp.Or(config.Chunk, DefaultChunk)
	found.Between("Chunk", config.Chunk, 1, largestChunk)
	if err := found.Err(); err != nil {
		return nil, failed("new", err)
	}
	return &Batches{box: box, store: box.Store(), config: config, watched: map[int64]*watched{}}, nil
}

// Box is what the batches were made over.
func (b *Batches) Box() *outbox.Box { return b.box }

// Config is that of the batches, with every default filled in.
func (b *Batches) Config() Config { return b.config }
