package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A Sweep is one step of a walk over messages in order of id.
type Sweep struct {
	// Count of messages removed, or expired.
	Count int
	// Next is the id to go on after; 0 when the walk is at its end and starts over.
	Next int64
}

// PurgeDelivered removes delivered messages settled longer than keep ago, walking upwards in id from after, at most limit settlements at a
// step. More than 1,000 is 1,000; zero or less does nothing. One statement. Retryable, as all calls that purge.
func (b *Box) PurgeDelivered(ctx context.Context, after int64, keep time.Duration, limit int) (Sweep, error) {
	if err := refusePurge(ctx, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge delivered", err)
	}
	rows, err := b.store.PurgeDelivered(ctx, db.PurgeDeliveredParams{AfterID: after, MaxRows: int32(min(limit, maxBatch)), Keep: micros(keep)})
	var sweep Sweep
	for _, row := range rows {
		if row.Removed {
			sweep.Count++
		} else {
			sweep.Next = row.ID
		}
	}
	return sweep, failed("purge delivered", err)
}

// PurgeUndelivered removes messages of one other terminal state (dead, cancelled or expired) settled longer than keep ago, oldest first,
// and counts them. A key that a dead message blocked is free again. limit is as in PurgeDelivered; a count below it says that no more are
// old enough, or that others hold some of them: those are left for the next call. One statement.
func (b *Box) PurgeUndelivered(ctx context.Context, state State, keep time.Duration, limit int) (int, error) {
	if state != StateDead && state != StateCancelled && state != StateExpired {
		var found problems
		found.add("State", "is none of dead, cancelled and expired")
		return 0, failed("purge undelivered", found.err())
	}
	if err := refusePurge(ctx, keep); err != nil || limit <= 0 {
		return 0, failed("purge undelivered", err)
	}
	ids, err := b.store.PurgeUndelivered(ctx, db.PurgeUndeliveredParams{
		Outcome: string(state), Keep: micros(keep), MaxRows: int32(min(limit, maxBatch)),
	})
	return len(ids), failed("purge undelivered", err)
}

// PurgeWorkers forgets workers not seen for keep and counts them. Leases they still hold run out by themselves; a worker that is alive
// after all registers anew. limit is as in PurgeDelivered. One statement.
func (b *Box) PurgeWorkers(ctx context.Context, keep time.Duration, limit int) (int, error) {
	if err := refusePurge(ctx, keep); err != nil || limit <= 0 {
		return 0, failed("purge workers", err)
	}
	ids, err := b.store.PurgeWorkers(ctx, db.PurgeWorkersParams{Keep: micros(keep), MaxRows: int32(min(limit, maxBatch))})
	return len(ids), failed("purge workers", err)
}

// ExpireUnleased settles as expired what nobody ever leased within its age and grace more, walking upwards in id from after over the open
// messages, at most examine at a step. More than 10,000 is 10,000; zero or less does nothing. One statement.
func (b *Box) ExpireUnleased(ctx context.Context, after int64, grace time.Duration, examine int) (Sweep, error) {
	var found problems
	if grace < 0 {
		found.addf("grace", "is negative: %v", grace)
	}
	if err := found.refused(ctx); err != nil || examine <= 0 {
		return Sweep{}, failed("expire unleased", err)
	}
	rows, err := b.store.ExpireUnleased(ctx, db.ExpireUnleasedParams{
		AfterID: after, Examine: int32(min(examine, expireExamine)), Grace: micros(grace),
	})
	var sweep Sweep
	for _, row := range rows {
		if row.Expired {
			sweep.Count++
		} else {
			sweep.Next = row.ID
		}
	}
	return sweep, failed("expire unleased", err)
}

const expireExamine = 10_000

// refusePurge never lets a period that was forgotten remove everything.
func refusePurge(ctx context.Context, keep time.Duration) error {
	var found problems
	if keep <= 0 {
		found.addf("keep", "is %v, it must be longer than zero", keep)
	}
	return found.refused(ctx)
}
