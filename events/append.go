package events

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	// appendTries bounds how often an event is tried whose id is taken at one moment and free at the next (a purge in between), or whose stream
	// has to be adopted first.
	appendTries  = 3
	adoptTimeout = 2 * time.Second
	maxBatch     = 1_000
	maxStatement = 4 << 20 // payload bytes
)

// A Receipt is what became of one event.
type Receipt struct {
	// ID is the event's, drawn if it had none.
	ID string
	// Position is the event's, or that of the event that has the id.
	Position int64
	// Status is outbox.Recorded, Duplicate or Conflicted.
	Status outbox.Status
	// Effects are the receipts of what was derived; nil for a duplicate, whose effects came with the first.
	Effects outbox.Receipts
}

// Append records events in the caller's transaction, together with the effects that the subscriptions derive from them. There is one receipt
// each, in input order. An id that is taken is no error when it is the same event (a duplicate, whose effects are not derived again), and a
// *ConflictError beside the receipts when it is not; an effect's key that is taken by other content is an *outbox.KeyConflictError likewise,
// whose places are those among all derived effects. Either way the others are in the transaction, which can go on.
//
// All events are validated and all effects derived and validated before any statement: outbox.ErrInvalid, ErrDerivation. Any other
// error comes from the database and is that of the caller's transaction: roll back; retry the whole transaction if it is db.ErrRetry.
// The first to append to a stream that was restored from a dump adopts it, on a connection beside tx: where none is free for 2 s, db.ErrRetry.
// Log.Adopt at the start saves that.
// It takes one statement for each 1,000 events or 4 MiB, and one more for as many effects. Under outbox.WithSuppressed the events are recorded
// and the effects are not.
func (l *Log) Append(ctx context.Context, tx db.Tx, events ...Event) ([]Receipt, error) {
	run, err := l.prepare(ctx, tx, events)
	if err != nil || len(events) == 0 {
		return nil, failed("append", err)
	}
	for _, batch := range run.statements() {
		if err := run.store(ctx, batch); err != nil {
			return nil, failed("append", err)
		}
	}
	err = run.enqueue(ctx)
	if len(run.conflicts) > 0 && (err == nil || errors.Is(err, outbox.ErrKeyConflict)) {
		slices.SortFunc(run.conflicts, func(a, b Conflict) int { return cmp.Compare(a.Index, b.Index) })
		err = errors.Join(&ConflictError{Conflicts: run.conflicts}, err)
	}
	return run.receipts, failed("append", err)
}

// An appendRun is one Append under way.
type appendRun struct {
	log       *Log
	tx        db.Tx
	events    []Event
	digests   [][sha256.Size]byte
	effects   [][]outbox.Effect // of each event
	receipts  []Receipt
	conflicts []Conflict
}

func (l *Log) prepare(ctx context.Context, tx db.Tx, given []Event) (*appendRun, error) {
	run := &appendRun{log: l, tx: tx, events: slices.Clone(given), receipts: make([]Receipt, len(given))}
	var found refusal.Problems
	for i := range run.events {
		e := &run.events[i]
		e.Position, e.RecordedAt, e.cursor = 0, Event{}.RecordedAt, Cursor{}
		if e.ID == "" {
			id, err := uuid.NewV7()
			if err != nil {
				return nil, err
			}
			e.ID = id.String()
		}
		e.check(found.At(i), l.maxPayload)
		run.receipts[i].ID = e.ID
	}
	if err := found.Refused(ctx); err != nil {
		return nil, err
	}
	if tx == nil {
		return nil, db.ErrForeignTx
	}
	for i, e := range run.events {
		var effects []outbox.Effect
		for _, s := range l.subscriptions {
			if !s.takes(e) {
				continue
			}
			derived, err := s.derive(l.box, e)
			if err != nil {
				return nil, &DerivationError{Index: i, Subscription: s.Name, Err: err}
			}
			effects = append(effects, derived...)
		}
		run.effects = append(run.effects, effects)
		run.digests = append(run.digests, e.digest())
	}
	return run, nil
}

// statements cuts the events, in input order, into what one statement takes.
func (r *appendRun) statements() [][]int {
	var all [][]int
	size := 0
	for i, e := range r.events {
		size += len(e.Payload)
		if last := len(all) - 1; last >= 0 && len(all[last]) < maxBatch && size <= maxStatement {
			all[last] = append(all[last], i)
			continue
		}
		all = append(all, []int{i})
		size = len(e.Payload)
	}
	return all
}

// store stores the events at some places and says of the others what stands under their ids.
func (r *appendRun) store(ctx context.Context, batch []int) error {
	for range appendTries {
		taken, err := r.insert(ctx, batch)
		if err != nil || len(taken) == 0 {
			return err
		}
		if batch, err = r.classify(ctx, taken); err != nil || len(batch) == 0 {
			return err
		}
	}
	return fmt.Errorf("event %q was not stored in %d tries: %w", r.events[batch[0]].ID, appendTries, db.ErrRetry)
}

// insert gives the places whose id was taken.
func (r *appendRun) insert(ctx context.Context, batch []int) (taken []int, err error) {
	var p db.AppendEventsParams
	for _, i := range batch {
		e := &r.events[i]
		metadata, err := content.EncodeMetadata(e.Metadata)
		if err != nil {
			return nil, err
		}
		p.Tenants = append(p.Tenants, e.Tenant)
		p.Streams = append(p.Streams, e.Stream)
		p.Types = append(p.Types, e.Type)
		p.EventIds = append(p.EventIds, e.ID)
		p.Digests = append(p.Digests, r.digests[i][:])
		p.Metadatas = append(p.Metadatas, metadata)
		p.Payloads = append(p.Payloads, content.Bytes(e.Payload))
	}
	rows, err := r.log.store.AppendEvents(ctx, r.tx, p)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 { // restored from a dump, and nobody has adopted the stream yet
		return batch, r.adopt(ctx)
	}
	for n, i := range batch {
		if !rows[n].Stored {
			taken = append(taken, i)
			continue
		}
		r.receipts[i].Position, r.receipts[i].Status = rows[n].Position, outbox.Recorded
	}
	return taken, nil
}

// adopt makes a restored stream this server's own, once. It needs a connection beside the caller's, which he may keep from becoming free.
func (r *appendRun) adopt(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	_, err := r.log.store.AdoptStream(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return fmt.Errorf("the stream was restored from a dump, and no connection was free to adopt it: %w", db.ErrRetry)
	}
	return err
}

// classify tells duplicates from conflicts and gives the places where nothing stands any more.
func (r *appendRun) classify(ctx context.Context, taken []int) (free []int, err error) {
	var p db.FindEventsParams
	for _, i := range taken {
		p.Tenants = append(p.Tenants, r.events[i].Tenant)
		p.EventIds = append(p.EventIds, r.events[i].ID)
		p.Digests = append(p.Digests, r.digests[i][:])
	}
	rows, err := r.log.store.FindEvents(ctx, r.tx, p)
	if err != nil {
		return nil, err
	}
	standing := make(map[int]db.FindEventsRow, len(rows))
	for _, row := range rows {
		standing[taken[row.Ordinal-1]] = row
	}
	for _, i := range taken {
		row, ok := standing[i]
		if !ok {
			free = append(free, i)
			continue
		}
		r.receipts[i].Position, r.receipts[i].Status = row.Position, outbox.Duplicate
		if !row.SameDigest {
			r.receipts[i].Status = outbox.Conflicted
			r.conflicts = append(r.conflicts, Conflict{Index: i, Tenant: r.events[i].Tenant, ID: r.events[i].ID, Position: row.Position})
		}
	}
	return free, nil
}

// enqueue records the effects of the events that were stored.
func (r *appendRun) enqueue(ctx context.Context) error {
	var all []outbox.Effect
	for i, receipt := range r.receipts {
		if receipt.Status != outbox.Recorded {
			continue
		}
		for _, effect := range r.effects[i] {
			effect.SourcePosition = receipt.Position
			all = append(all, effect)
		}
	}
	receipts, err := r.log.box.EnqueueMany(ctx, r.tx, all)
	for i := range r.receipts {
		if receipt := &r.receipts[i]; receipt.Status == outbox.Recorded && len(receipts) > 0 {
			n := len(r.effects[i])
			receipt.Effects, receipts = receipts[:n:n], receipts[n:]
		}
	}
	return err
}
