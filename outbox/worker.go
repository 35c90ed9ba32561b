package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/fencepost-go/fencepost/db"
)

const maxHost = 255

// RegisterWorker records a running worker and gives the id that stands in the leases it takes. The name is a label for operators, never
// a fence: two workers may have the same. It has at most 128 bytes; host is cut at 255. Retryable.
func (b *Box) RegisterWorker(ctx context.Context, name, host string) (int64, error) {
	var found problems
	found.name("Worker", name, maxName)
	if err := found.refused(ctx); err != nil {
		return 0, failed("register worker", err)
	}
	ids, err := b.store.RegisterWorker(ctx, db.RegisterWorkerParams{Name: name, Host: cut(sanitise(strings.TrimSpace(host)), maxHost)})
	if err != nil {
		return 0, failed("register worker", err)
	}
	return ids[0], nil
}

// TouchWorkers says that workers are alive, at most 1,000 of them. For each it answers, in their order, false when the record was purged: register anew.
// Retryable.
func (b *Box) TouchWorkers(ctx context.Context, ids []int64) ([]bool, error) {
	var found problems
	if len(ids) > maxBatch {
		found.addf("IDs", "has %d entries, at most %d are allowed", len(ids), maxBatch)
	}
	if err := found.refused(ctx); err != nil {
		return nil, failed("touch workers", err)
	}
	touched, err := b.store.TouchWorkers(ctx, db.TouchWorkersParams{Ids: distinct(ids)})
	if err != nil {
		return nil, failed("touch workers", err)
	}
	known := make([]bool, len(ids))
	for i, id := range ids {
		known[i] = slices.Contains(touched, id)
	}
	return known, nil
}
