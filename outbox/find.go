package outbox

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/fencepost-go/fencepost/db"
)

// Find says what stands under the keys of some effects, as the caller's transaction sees it, which includes what it enqueued itself. It stores
// nothing: there is one receipt each, in input order, with Status Duplicate where the content is the same, Conflicted where it is not, and
// NotFound where there is nothing. Only Tenant, Consumer and Key have to be valid. One statement for each 1,000 effects; errors are as those
// of Enqueue.
func (b *Box) Find(ctx context.Context, tx db.Tx, effects []Effect) (Receipts, error) {
	var found problems
	for i, e := range effects {
		at := found.at(i)
		at.optionalName("Tenant", e.Tenant, maxName)
		at.name("Consumer", e.Consumer, maxName)
		at.required("Key", e.Key, maxKey)
	}
	if err := found.refused(ctx); err != nil {
		return nil, failed("find", err)
	}
	if tx == nil {
		return nil, failed("find", db.ErrForeignTx)
	}
	run := &enqueueRun{box: b, tx: tx, effects: effects, receipts: make(Receipts, len(effects)), digests: make([][sha256.Size]byte, len(effects))}
	for i, e := range effects {
		run.digests[i] = digest(e)
		run.receipts[i].Status = NotFound
	}
	for batch := range slices.Chunk(places(len(effects)), maxBatch) {
		if _, err := run.classify(ctx, batch); err != nil {
			return nil, failed("find", err)
		}
	}
	return run.receipts, nil
}
