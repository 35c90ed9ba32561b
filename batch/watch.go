package batch

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	// DefaultEvery is how often progress is told unless a watcher says otherwise.
	DefaultEvery = time.Second

	leastEvery = 100 * time.Millisecond
	mostEvery  = time.Hour
)

// Watch tells the progress of a batch: at once, then when it has changed, and never more often than once in every (0 is DefaultEvery; between 100 ms
// and 1 h). The last one says that the batch is completed, and ends it. However many watch one batch through these Batches, its rows are not counted more
// often than the most eager of them asks.
//
// An error is told in place of a Progress. ErrNotFound, outbox.ErrInvalid and the end of ctx are the last; after any other it goes on if the caller does.
func (b *Batches) Watch(ctx context.Context, scope outbox.Scope, id int64, every time.Duration) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		if every == 0 {
			every = DefaultEvery
		}
		var found refusal.Problems
		found.Scope(scope)
		found.Lasting("every", every, leastEvery, mostEvery)
		if err := found.Refused(ctx); err != nil {
			yield(Progress{}, failed("watch", err))
			return
		}
		w := b.watch(id)
		defer b.unwatch(id, w)
		var told Progress
		for {
			p, at, err := b.look(ctx, scope, id, w, every)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			switch {
			case err != nil:
				if !yield(Progress{}, failed("watch", err)) || errors.Is(err, ErrNotFound) || ctx.Err() != nil {
					return
				}
			case p != told:
				if told = p; !yield(p, nil) || p.Completed() {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(at.Add(every))):
			}
		}
	}
}

// A watched is a batch that is watched, with the last look at it, which all its watchers share.
type watched struct {
	watchers int           // under Batches.mu
	turn     chan struct{} // holds one value while somebody looks

	at   time.Time
	last Progress
	err  error
}

func (b *Batches) watch(id int64) *watched {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.watched[id]
	if w == nil {
		w = &watched{turn: make(chan struct{}, 1)}
		b.watched[id] = w
	}
	w.watchers++
	return w
}

func (b *Batches) unwatch(id int64, w *watched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.watchers--; w.watchers == 0 {
		delete(b.watched, id)
	}
}

// look gives the last look at a batch, or takes another if that is too old, and says when it was.
func (b *Batches) look(ctx context.Context, scope outbox.Scope, id int64, w *watched, every time.Duration) (Progress, time.Time, error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return Progress{}, time.Now(), ctx.Err()
	}
	if w.at.IsZero() || time.Since(w.at) >= every {
		at := time.Now()
		p, err := b.count(ctx, scope, id, false)
		if errors.Is(err, ErrNotFound) || ctx.Err() != nil {
			return Progress{}, at, err // which is this watcher's alone
		}
		w.last, w.at, w.err = p, at, err
	}
	if w.err == nil && !scope.Includes(w.last.Tenant) {
		return Progress{}, w.at, ErrNotFound
	}
	return w.last, w.at, w.err
}
