package outbox

import (
	"context"
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

// TouchWorker says that a worker is alive. It answers false when the record was purged: register anew. Retryable.
func (b *Box) TouchWorker(ctx context.Context, id int64) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, failed("touch worker", err)
	}
	ids, err := b.store.TouchWorker(ctx, db.TouchWorkerParams{ID: id})
	return len(ids) > 0, failed("touch worker", err)
}
