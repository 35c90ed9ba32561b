package batch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// createTries bounds how often a chunk is tried that meets another Create of the same batch, or a deadlock.
const createTries = 5

// A Spec says what the rows of a batch become.
type Spec struct {
	// Tenant may be empty. At most 128 bytes.
	Tenant string
	// Consumer, Target and Kind of every row. At most 128 bytes each.
	Consumer, Target, Kind string
	// Key is the identity of the batch within (Tenant, Consumer). Row n has the key Key/n. At most MaxKey bytes.
	Key string
	// Priority and MaxAge of every row: see outbox.Effect.
	Priority int16
	MaxAge   time.Duration
	// OnComplete, unless nil, is recorded once every row has its end: in the transaction of the last one, once a run. From the second run on its
	// key has the run behind it, as in settle/run-2. Of an Effect it takes Consumer, Target, Kind, Key (at most MaxKey bytes), Payload, Metadata and
	// Priority; the tenant is the batch's. Its key is for it alone: one that is taken when the batch is begun is ErrConflict, and where it is taken
	// by the end nothing is recorded.
	OnComplete *outbox.Effect
	// Report, unless nil, is told after each transaction what is stored so far.
	Report func(Receipt)
}

// A Receipt is what a Create did.
type Receipt struct {
	// ID of the batch; 0 under outbox.WithSuppressed, which checks rows and records nothing.
	ID int64
	// Rows counts all that were read; Rejected those that were not good; Duplicate those that stood there before, rejected ones included.
	Rows, Rejected, Duplicate int
}

// Create makes a batch of what a source gives: rows in chunks, each in a transaction of its own, and then the seal, after which there are no more. A row may
// be performed as soon as its chunk is stored; the batch completes when it is sealed and every row has its end.
//
// After an error or a crash the batch is not sealed. Call Create again with the same Spec and the same input: it goes on, and nothing is stored twice. Another batch
// under the key is a *ConflictError; a row that is not the one which stands there a *RowConflictError, and the rows before it are stored; ErrSealed says
// that the batch was cancelled. Beside an error the Receipt says what is stored.
//
// An invalid Spec is refused before any statement. Retryable are errors of the database. Two Creates of one batch at once do no harm.
func (b *Batches) Create(ctx context.Context, spec Spec, source Source) (Receipt, error) {
	var found refusal.Problems
	b.check(&found, spec)
	if source.rows == nil {
		found.Add("source", "gives nothing; use Rows.Reader or Rows.Channel")
	}
	if err := found.Refused(ctx); err != nil {
		return Receipt{}, failed("create", err)
	}
	c := &creation{Batches: b, spec: spec, suppressed: outbox.IsSuppressed(ctx)}
	err := c.run(ctx, source)
	return c.receipt, failed("create", err)
}

// check finds everything that a statement of a Create could fail on.
func (b *Batches) check(found *refusal.Problems, spec Spec) {
	bounds.CheckRequired(spec.Key, MaxKey, found.On("Key"))
	row := spec.effect(1, nil)
	row.Key = "1" // whatever is wrong with the batch's is said
	found.Take("", b.box.Check(row))
	e := spec.OnComplete
	if e == nil {
		return
	}
	found.Take("OnComplete.", b.box.Check(*e))
	if e.Tenant != "" && e.Tenant != spec.Tenant {
		found.Add("OnComplete.Tenant", "is not that of the batch")
	}
	if len(e.Key) > MaxKey {
		found.Addf("OnComplete.Key", "has %d bytes, at most %d are allowed", len(e.Key), MaxKey)
	}
	if n, isRow := strings.CutPrefix(e.Key, spec.Key+"/"); isRow && e.Consumer == spec.Consumer && strings.Trim(n, "0123456789") == "" {
		found.Add("OnComplete.Key", "is that of a row")
	}
	if e.OrderKey != "" || e.Delay != 0 || !e.DueAt.IsZero() || e.MaxAge != 0 || e.SourcePosition != 0 || e.SourceEventID != "" {
		found.Add("OnComplete", "has an order key, a time, an age or a source, which are not for the effect at the end of a batch")
	}
}

// effect is what a row becomes.
func (s Spec) effect(number int, payload []byte) outbox.Effect {
	return outbox.Effect{
		Tenant: s.Tenant, Consumer: s.Consumer, Target: s.Target, Kind: s.Kind, Key: s.Key + "/" + strconv.Itoa(number),
		Payload: payload, Priority: s.Priority, MaxAge: s.MaxAge,
	}
}

// params are the batch's row, with the digest of all that it says.
func (s Spec) params() (p db.AddBatchParams, err error) {
	p = db.AddBatchParams{Tenant: s.Tenant, Consumer: s.Consumer, Target: s.Target, Kind: s.Kind, Key: s.Key, CompleteDigest: []byte{}, CompletePayload: []byte{}}
	if e := s.OnComplete; e != nil {
		p.CompleteConsumer, p.CompleteTarget, p.CompleteKind, p.CompleteKey, p.CompletePriority = e.Consumer, e.Target, e.Kind, e.Key, e.Priority
		digest := content.OfEffect(e.Target, e.Kind, "", e.Payload, e.Metadata)
		p.CompleteDigest, p.CompletePayload = digest[:], content.Bytes(e.Payload)
		if p.CompleteMetadata, err = content.EncodeMetadata(e.Metadata); err != nil {
			return p, err
		}
	}
	h := content.NewDigest()
	for _, text := range []string{
		s.Target, s.Kind, fmt.Sprint(s.Priority), fmt.Sprint(int64(s.MaxAge)), p.CompleteConsumer, p.CompleteKey, fmt.Sprint(p.CompletePriority),
	} {
		content.Write(h, []byte(text))
	}
	content.Write(h, p.CompleteDigest)
	p.Digest = h.Sum(nil)
	return p, nil
}

// A creation is one Create under way.
type creation struct {
	*Batches
	spec       Spec
	suppressed bool
	resumed    bool // there may be rows already
	receipt    Receipt
	chunk      []inputRow
	bytes      int // of the chunk's payloads
}

func (c *creation) run(ctx context.Context, source Source) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	for row, err := range source.rows(ctx) {
		if err != nil {
			return err
		}
		if row.number > MaxRows {
			return fmt.Errorf("row %d: a batch has at most %d", row.number, MaxRows)
		}
		if len(c.chunk) == c.config.Chunk || len(c.chunk) > 0 && c.bytes+len(row.payload) > chunkBytes {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
		c.add(row)
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	return c.seal(ctx)
}

// add checks what the box allows, and puts a row into the chunk.
func (c *creation) add(row inputRow) {
	if row.problem == nil {
		if err := c.box.Check(c.spec.effect(row.number, row.payload)); err != nil {
			row.problem = numbered(reject(PhaseDecode, "", fmt.Sprintf("has %d bytes, more than a payload may have", len(row.payload))), row.number)
		}
	}
	if row.problem != nil {
		row.payload, row.problem = nil, c.reason(row.problem)
	}
	c.chunk = append(c.chunk, row)
	c.bytes += len(row.payload)
}

// begin finds or makes the batch.
func (c *creation) begin(ctx context.Context) error {
	if c.suppressed {
		return nil
	}
	params, err := c.spec.params()
	if err == nil {
		err = c.checkEnd(ctx)
	}
	if err != nil {
		return err
	}
	for range createTries {
		rows, err := c.store.AddBatch(ctx, params)
		switch {
		case err != nil:
			return err
		case len(rows) == 0: // another begins it at this moment
		case !rows[0].Added && !rows[0].SameDigest:
			return &ConflictError{params.Tenant, params.Consumer, params.Key, rows[0].ID}
		default:
			c.receipt.ID, c.resumed = rows[0].ID, !rows[0].Added
			return nil
		}
	}
	return fmt.Errorf("key %q was neither free nor taken in %d tries: %w", params.Key, createTries, db.ErrRetry)
}

// checkEnd refuses to begin a batch whose effect at the end would be lost, since its key is taken.
func (c *creation) checkEnd(ctx context.Context) error {
	if c.spec.OnComplete == nil {
		return nil
	}
	end := *c.spec.OnComplete
	end.Tenant = c.spec.Tenant
	var found outbox.Receipts
	err := c.store.Transact(ctx, func(tx db.Tx) (err error) {
		found, err = c.box.Find(ctx, tx, []outbox.Effect{end})
		return err
	})
	if err != nil || found[0].Status == outbox.NotFound {
		return err
	}
	_, err = c.Find(ctx, c.spec.Tenant, c.spec.Consumer, c.spec.Key)
	if errors.Is(err, ErrNotFound) { // else it may be the batch's own
		return fmt.Errorf("OnComplete.Key is %w: message %d", ErrConflict, found[0].ID)
	}
	return err
}

// flush stores the chunk, but for what stands there already, and counts it.
func (c *creation) flush(ctx context.Context) error {
	if len(c.chunk) == 0 {
		return nil
	}
	standing := 0
	if !c.suppressed {
		var err error
		if standing, err = c.storeChunk(ctx); err != nil {
			return err
		}
	}
	for _, row := range c.chunk {
		if row.problem != nil {
			c.receipt.Rejected++
		}
	}
	c.receipt.Rows += len(c.chunk)
	c.receipt.Duplicate += standing
	c.chunk, c.bytes = c.chunk[:0], 0
	if c.spec.Report != nil {
		c.spec.Report(c.receipt)
	}
	return nil
}
