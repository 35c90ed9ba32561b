package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	notifyEvery    = 10 * time.Millisecond
	notifyLogEvery = time.Second
)

// flags are set by Committed: one for each part of this process that wants to know.
type flags struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{}
}

// Committed says that a transaction that stored these messages has committed, so that senders need not wait for their next poll. It only
// sets flags, which the senders of this process and RunNotifier act on, and never blocks. Calling it too early, too often or never does no
// harm but to latency; too early, a message that was handed off waits for the short lease it was born with, which costs it an attempt.
func (b *Box) Committed(ids ...int64) {
	if len(ids) == 0 || b.handedOff(ids) {
		return
	}
	b.committed.mu.Lock()
	defer b.committed.mu.Unlock()
	for flag := range b.committed.all {
		select {
		case flag <- struct{}{}:
		default: // set already
		}
	}
}

// Woken gives a channel that receives once after any number of Committed, without the database. stop ends it; the channel is never closed.
func (b *Box) Woken() (woken <-chan struct{}, stop func()) {
	flag := make(chan struct{}, 1)
	b.committed.mu.Lock()
	defer b.committed.mu.Unlock()
	b.committed.all[flag] = struct{}{}
	return flag, func() {
		b.committed.mu.Lock()
		defer b.committed.mu.Unlock()
		delete(b.committed.all, flag)
	}
}

// RunNotifier sends a hint to listening senders soon after Committed, at most one in 10 ms however many transactions commit, and blocks
// until ctx ends; then it returns nil. A hint that cannot be sent is logged, at most once a second, and dropped: senders poll anyway. A
// sender runs it for its box; a process that only produces may run it itself.
func (b *Box) RunNotifier(ctx context.Context) error {
	woken, stop := b.Woken()
	defer stop()
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
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
