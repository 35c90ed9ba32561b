package outbox

import "context"

// RegisterWorker records a running worker and gives the id that stands in the leases it takes. The name is a label for operators, never
// a fence: two workers may have the same. host is cut at 255 bytes. Retryable.
func (b *Box) RegisterWorker(ctx context.Context, name, host string) (int64, error) {
	return 0, nil
}

// TouchWorker says that a worker is alive. It answers false when the record was purged: register anew. Retryable.
func (b *Box) TouchWorker(ctx context.Context, id int64) (bool, error) {
	return false, nil
}
