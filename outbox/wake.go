package outbox

import (
	"context"
	"time"
)

const (
	notifyEvery    = 10 * time.Millisecond
	notifyLogEvery = time.Second
)

// Committed says that a transaction that stored these messages has committed, so that senders need not wait for their next poll. It only
// sets a flag, which RunNotifier acts on, and never blocks. Calling it too early, too often or never does no harm but to latency.
func (b *Box) Committed(ids ...int64) {
	if len(ids) == 0 {
		return
	}
	select {
	case b.committed <- struct{}{}:
	default: // set already
	}
}

// RunNotifier sends a hint to listening senders soon after Committed, at most one in 10 ms however many transactions commit, and blocks
// until ctx ends; then it returns nil. A hint that cannot be sent is logged, at most once a second, and dropped: senders poll anyway. A
// sender runs it for its box; a process that only produces may run it itself.
func (b *Box) RunNotifier(ctx context.Context) error {
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.committed:
		}
		if err := b.store.Wake(ctx); err != nil && ctx.Err() == nil && time.Since(logged) >= notifyLogEvery {
			logged = time.Now()
			b.log.WarnContext(ctx, "cannot wake senders; they find new messages at their next poll", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(notifyEvery):
		}
	}
}
