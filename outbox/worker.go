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

// TouchWorkers says that workers are alive, with one statement for each 1,000. For each it answers, in their order, false when the record was purged:
// register anew. Retryable.
func (b *Box) TouchWorkers(ctx context.Context, ids []int64) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("touch workers", err)
	}
	alive := map[int64]bool{}
	for batch := range slices.Chunk(distinct(ids), maxBatch) {
		touched, err := b.store.TouchWorkers(ctx, db.TouchWorkersParams{Ids: batch})
		if err != nil {
			return nil, failed("touch workers", err)
		}
		for _, id := range touched {
			alive[id] = true
		}
	}
	known := make([]bool, len(ids))
	for i, id := range ids {
		known[i] = alive[id]
	}
	return known, nil
}
