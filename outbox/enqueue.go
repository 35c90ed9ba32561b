package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/content"
)

const (
	// enqueueTries bounds how often an effect is tried whose key is taken at one moment and free at the next (a purge in between).
	enqueueTries = 3
	// maxStatement bounds the payload bytes of one statement.
	maxStatement = 4 << 20
)

// Enqueue records an effect in the caller's transaction. It is performed, by whatever sender serves its consumer, if and only if that
// transaction commits. A key that is taken is no error when the content is the same (Duplicate, with the message's id and state), and a
// *KeyConflictError beside the receipt when it is not; either way the transaction can go on.
//
// An invalid effect is refused before any statement. Any other error comes from the database and is that of the caller's transaction:
// roll back; retry the whole transaction if it is db.ErrRetry (a caller at REPEATABLE READ or above meets it when two transactions enqueue
// one key at once).
func (b *Box) Enqueue(ctx context.Context, tx db.Tx, effect Effect) (Receipt, error) {
	var found problems
	b.checkEffect(&found, effect)
	receipts, err := b.enqueue(ctx, tx, []Effect{effect}, &found)
	if len(receipts) == 0 {
		return Receipt{}, err
	}
	return receipts[0], err
}

// EnqueueMany is Enqueue for many effects. All are validated before any is sent. There is one receipt each, in input order; ids rise in
// that order. Of a key given twice the first is stored and the second is a duplicate of it, or conflicts with it. Conflicts are all listed
// in one *KeyConflictError beside the receipts, and the other effects are in the transaction: the caller commits or rolls back. One
// statement for each 1,000 effects or 4 MiB of payload, one more where keys are taken. Within a statement keys are taken in one order for
// all, but not across statements: two transactions that enqueue the same keys in several statements may meet in a deadlock, which ends one
// of them with db.ErrRetry.
func (b *Box) EnqueueMany(ctx context.Context, tx db.Tx, effects []Effect) (Receipts, error) {
	var found problems
	for i, effect := range effects {
		b.checkEffect(found.at(i), effect)
	}
	return b.enqueue(ctx, tx, effects, &found)
}

// Check finds everything that Enqueue would refuse about the effects, without a statement: for code that has to know before it begins.
func (b *Box) Check(effects ...Effect) error {
	var found problems
	for i, effect := range effects {
		b.checkEffect(found.at(i), effect)
	}
	return failed("check", found.err())
}

func (b *Box) enqueue(ctx context.Context, tx db.Tx, effects []Effect, found *problems) (Receipts, error) {
	if err := found.refused(ctx); err != nil {
		return nil, failed("enqueue", err)
	}
	if len(effects) == 0 {
		return nil, nil
	}
	run := &enqueueRun{box: b, tx: tx, effects: effects, receipts: make(Receipts, len(effects))}
	if IsSuppressed(ctx) {
		for i := range run.receipts {
			run.receipts[i] = Receipt{Status: Suppressed}
		}
	} else if err := run.store(ctx); err != nil {
		return nil, failed("enqueue", err)
	}
	b.observer.Enqueued(ctx, effects, run.receipts)
	if len(run.conflicts) > 0 {
		return run.receipts, failed("enqueue", &KeyConflictError{Conflicts: run.conflicts})
	}
	return run.receipts, nil
}

// An enqueueRun is one EnqueueMany under way.
type enqueueRun struct {
	box       *Box
	tx        db.Tx
	effects   []Effect
	digests   [][sha256.Size]byte
	receipts  Receipts
	conflicts []Conflict
	trace     map[string]string // under which all are enqueued
}

func (r *enqueueRun) store(ctx context.Context) error {
	if r.tx == nil {
		return db.ErrForeignTx
	}
	r.trace = r.box.traceOf(ctx)
	r.digests = make([][sha256.Size]byte, len(r.effects))
	for i, effect := range r.effects {
		r.digests[i] = digest(effect)
	}
	for _, batch := range r.statements() {
		if err := r.storeBatch(ctx, batch); err != nil {
			return err
		}
	}
	slices.SortFunc(r.conflicts, func(a, b Conflict) int { return cmp.Compare(a.Index, b.Index) })
	return nil
}

// statements cuts the effects, in input order, into what one statement takes.
func (r *enqueueRun) statements() [][]int {
	var all [][]int
	size := 0
	for i, effect := range r.effects {
		size += len(effect.Payload)
		if last := len(all) - 1; last >= 0 && len(all[last]) < maxBatch && size <= maxStatement {
			all[last] = append(all[last], i)
			continue
		}
		all = append(all, []int{i})
		size = len(effect.Payload)
	}
	return all
}

// storeBatch stores the effects at some places and says of the others what stands under their keys.
func (r *enqueueRun) storeBatch(ctx context.Context, batch []int) error {
	for range enqueueTries {
		taken, err := r.insert(ctx, batch)
		if err != nil || len(taken) == 0 {
			return err
		}
		if batch, err = r.classify(ctx, taken); err != nil || len(batch) == 0 {
			return err
		}
	}
	return fmt.Errorf("key %q was taken and free again %d times: %w", r.effects[batch[0]].Key, enqueueTries, db.ErrRetry)
}

// insert gives the places whose key was taken.
func (r *enqueueRun) insert(ctx context.Context, batch []int) (taken []int, err error) {
	params, err := r.params(batch)
	if err != nil {
		return nil, err
	}
	rows, err := r.send(ctx, batch, params)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for n, i := range batch {
		if !rows[n].Stored {
			taken = append(taken, i)
			continue
		}
		r.receipts[i] = Receipt{ID: rows[n].ID, Status: Recorded, State: StatePending, box: r.box}
		ids = append(ids, rows[n].ID)
	}
	if gatherer, ok := r.tx.(db.Gatherer); ok && len(ids) > 0 {
		gatherer.Gather(ids)
	}
	return taken, nil
}

// classify tells duplicates from conflicts and gives the places where nothing stands any more.
func (r *enqueueRun) classify(ctx context.Context, taken []int) (free []int, err error) {
	var params db.FindKeysParams
	for _, i := range taken {
		params.Tenants = append(params.Tenants, r.effects[i].Tenant)
		params.Consumers = append(params.Consumers, r.effects[i].Consumer)
		params.Keys = append(params.Keys, r.effects[i].Key)
		params.Digests = append(params.Digests, r.digests[i][:])
	}
	rows, err := r.box.store.FindKeys(ctx, r.tx, params)
	if err != nil {
		return nil, err
	}
	standing := make(map[int]db.FindKeysRow, len(rows))
	for _, row := range rows {
		standing[taken[row.Ordinal-1]] = row
	}
	for _, i := range taken {
		row, ok := standing[i]
		if !ok {
			free = append(free, i)
			continue
		}
		r.receipts[i] = Receipt{ID: row.ID, Status: Duplicate, State: State(row.State)}
		if !row.SameDigest {
			r.receipts[i].Status = Conflicted
			effect := r.effects[i]
			r.conflicts = append(r.conflicts, Conflict{
				Index: i, Tenant: effect.Tenant, Consumer: effect.Consumer, Key: effect.Key, ID: row.ID, State: State(row.State),
			})
		}
	}
	return free, nil
}

func (r *enqueueRun) params(batch []int) (db.EnqueueParams, error) {
	var p db.EnqueueParams
	for _, i := range batch {
		e := &r.effects[i]
		metadata, err := content.EncodeMetadata(traced(e.Metadata, r.trace))
		if err != nil {
			return p, err
		}
		p.Tenants = append(p.Tenants, e.Tenant)
		p.Consumers = append(p.Consumers, e.Consumer)
		p.Targets = append(p.Targets, e.Target)
		p.Kinds = append(p.Kinds, e.Kind)
		p.Keys = append(p.Keys, e.Key)
		p.OrderKeys = append(p.OrderKeys, e.OrderKey)
		p.Priorities = append(p.Priorities, e.Priority)
		p.Digests = append(p.Digests, r.digests[i][:])
		p.Metadatas = append(p.Metadatas, metadata)
		p.Payloads = append(p.Payloads, content.Bytes(e.Payload))
		p.SourcePositions = append(p.SourcePositions, e.SourcePosition)
		p.SourceEventIds = append(p.SourceEventIds, e.SourceEventID)
		p.MaxAges = append(p.MaxAges, ageMicros(first(e.MaxAge, r.box.policy.MaxAge)))
		p.DueAts = append(p.DueAts, stored(e.DueAt)) // the zero instant lies in the past: now
		p.Delays = append(p.Delays, micros(e.Delay))
	}
	return p, nil
}
