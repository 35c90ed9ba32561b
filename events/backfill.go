package events

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// A BackfillRequest says which subscription runs over which past events.
type BackfillRequest struct {
	// Subscription is the name of one of the log's.
	Subscription string
	// Scope is whose events.
	Scope outbox.Scope
	// After is where it begins: by default at the oldest event there is, or where an earlier backfill of the subscription with Send
	// was interrupted.
	After Cursor
	// Batch is how many events one transaction takes. Default 500, at most 1,000.
	Batch int
	// Send records the effects. Without it the backfill only counts: acting on the past has to be asked for.
	Send bool
	// Progress, if set, is told after each batch.
	Progress func(Backfilled)
}

// Backfilled is what a backfill has done so far.
type Backfilled struct {
	// Events were read, and gave Effects.
	Events, Effects int
	// Recorded effects are new, Duplicates were there, Conflicts have a key that other content has, and were not recorded. All zero
	// without Send.
	Recorded, Duplicates, Conflicts int
	// Cursor is how far it came.
	Cursor Cursor
}

// backfillReader begins the name of the reader that remembers how far a backfill came.
const backfillReader = "backfill:"

// Backfill runs a subscription over past events, up to the end of the stream as it was at the start, and records each effect once, by its key: for a
// subscription that is new, or was mended. It takes one transaction of its own for each batch and remembers its place in it, as the reader
// "backfill:" and the subscription's name, with a digest of any scope but the zero one, so that one that was interrupted goes on; two at once of one
// scope disturb each other and get ErrReaderMoved. A key is known only as long as its message is kept (janitor.Config.Delivered): what was delivered
// and purged since is recorded and performed again, so begin After that where acting twice does harm.
// It blocks until it is done, and returns what it did, also beside an error, after which it may be called again.
func (l *Log) Backfill(ctx context.Context, request BackfillRequest) (Backfilled, error) {
	var found refusal.Problems
	s, ok := l.subscription(request.Subscription)
	if !ok {
		found.Add("Subscription", "is none of the log's subscriptions")
	}
	if request.Batch == 0 {
		request.Batch = 500
	}
	found.Between("Batch", request.Batch, 1, maxBatch)
	found.Scope(request.Scope)
	if err := found.Refused(ctx); err != nil {
		return Backfilled{}, failed("backfill", err)
	}
	run := &backfillRun{log: l, subscription: s, request: request, reader: readerOfBackfill(s, request.Scope)}
	err := run.all(ctx)
	return run.done, failed("backfill", err)
}

// readerOfBackfill is the name of the reader that remembers how far the backfill of a scope came: places of different scopes are not each
// other's.
func readerOfBackfill(s Subscription, scope outbox.Scope) string {
	names := scope.Names()
	if len(names) == 1 && names[0] == "" {
		return backfillReader + s.Name
	}
	h := content.NewDigest()
	for _, name := range names { // none for all tenants
		content.Write(h, []byte(name))
	}
	return fmt.Sprintf("%s%s:%x", backfillReader, s.Name, h.Sum(nil)[:8])
}

// A backfillRun is one Backfill under way.
type backfillRun struct {
	log          *Log
	subscription Subscription
	request      BackfillRequest
	reader       string
	done         Backfilled
}

func (r *backfillRun) all(ctx context.Context) error {
	end, err := r.log.End(ctx)
	if err != nil {
		return err
	}
	var saved Cursor
	if r.request.Send {
		if saved, err = r.log.Reader(ctx, r.reader); err != nil {
			return err
		}
	}
	r.done.Cursor = r.request.After
	if r.done.Cursor.IsZero() {
		r.done.Cursor = saved
	}
	for {
		page, err := r.log.Read(ctx, r.done.Cursor, r.request.Batch, Filter{Scope: r.request.Scope, Types: r.subscription.Types})
		if err != nil {
			return err
		}
		events := slices.DeleteFunc(page.Events, func(e Event) bool { return e.cursor.compare(end) > 0 })
		next := page.Next
		if next.compare(end) > 0 {
			next = end // what came meanwhile is not done: one that goes on from here must find it
		}
		if next == r.done.Cursor {
			break
		}
		if err := r.batch(ctx, events, saved, next); err != nil {
			return err
		}
		saved, r.done.Cursor = next, next
		if r.request.Progress != nil {
			r.request.Progress(r.done)
		}
		if next == end {
			break
		}
	}
	if !r.request.Send {
		return nil
	}
	_, err = r.log.RemoveReader(ctx, r.reader)
	return err
}

// batch derives the effects of some events and records them, together with the place.
func (r *backfillRun) batch(ctx context.Context, events []Event, from, to Cursor) error {
	var effects []outbox.Effect
	for i, e := range events {
		bare := e
		bare.Position, bare.RecordedAt, bare.cursor = 0, Event{}.RecordedAt, Cursor{} // as Append gives it
		derived, err := r.subscription.derive(r.log.box, bare)
		if err != nil {
			return &DerivationError{Index: i, Subscription: r.subscription.Name, Err: err}
		}
		for _, effect := range derived {
			effect.SourcePosition = e.Position
			effects = append(effects, effect)
		}
	}
	var receipts outbox.Receipts
	if r.request.Send {
		err := r.log.store.Transact(ctx, func(tx db.Tx) (err error) {
			receipts, err = r.log.box.EnqueueMany(ctx, tx, effects)
			if err != nil && !errors.Is(err, outbox.ErrKeyConflict) {
				return err
			}
			return r.log.SaveReader(ctx, tx, r.reader, from, to)
		})
		if err != nil {
			return err
		}
		receipts.Committed()
	}
	r.done.Events += len(events)
	r.done.Effects += len(effects)
	for _, receipt := range receipts {
		switch receipt.Status {
		case outbox.Recorded:
			r.done.Recorded++
		case outbox.Duplicate:
			r.done.Duplicates++
		case outbox.Conflicted:
			r.done.Conflicts++
		}
	}
	return nil
}
