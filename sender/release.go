package sender

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// release gives messages back that were not performed, with their attempts. One that cannot be given back before its lease ends is leased
// again then, and its attempt stays spent.
func (w *worker) release(now time.Time) {
	if len(w.unwanted) == 0 {
		if !w.busy[releasing] {
			w.outage.forget(releasing)
		}
		return
	}
	if !w.may(releasing, now) {
		return
	}
	batch := w.unwanted
	w.unwanted = nil
	releasings := make([]outbox.Releasing, len(batch))
	for i, h := range batch {
		releasings[i] = outbox.Releasing{Message: h.Message, Started: !h.started.IsZero()}
	}
	w.call(releasing, w.shortest/3, func(ctx context.Context) error {
		return w.box.ReleaseMany(ctx, releasings)
	}, func(err error) {
		now := time.Now()
		if err == nil {
			w.outage.worked(releasing, now)
			w.counts.Released += len(batch)
			w.box.Committed(handed(batch)...)
			return
		}
		for _, h := range batch {
			if now.Before(h.ends) {
				w.unwanted = append(w.unwanted, h)
			} else {
				w.counts.Lost++
			}
		}
	})
}

// handed are the messages that were born leased: whoever waits for a commit has yet to hear of theirs.
func handed(batch []*held) (ids []int64) {
	for _, h := range batch {
		if h.handed {
			ids = append(ids, h.ID)
		}
	}
	return ids
}
