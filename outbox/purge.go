package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A Sweep is one step of a walk that purges or expires.
type Sweep struct {
	// Count of rows removed, or expired.
	Count int
	// Last is the place of the last one that was removed, or expired; zero for none.
	Last Cursor
	// Next is where the walk goes on; zero when it is at its end and starts over.
	Next Cursor
	// Busy says that another process was at it and nothing was done: one purges at a time. Come again later.
	Busy bool
}

// PurgeDelivered removes delivered messages settled longer than keep ago, walking upwards in id from a place, over at most limit settlements
// at a step. More than 1,000 is 1,000; zero or less does nothing. One statement. Retryable, as all calls that purge.
func (b *Box) PurgeDelivered(ctx context.Context, scope Scope, from Cursor, keep time.Duration, limit int) (Sweep, error) {
	if err := refusePurge(ctx, scope, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge delivered", err)
	}
	rows, err := b.store.PurgeDelivered(ctx, db.PurgeDeliveredParams{
		SchemaName: b.store.Schema(), AllTenants: scope.all, Scope: scope.Names(),
		AfterID: from.ID, MaxRows: int32(min(limit, maxBatch)), Keep: micros(keep),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.add(row.Removed, row.Busy, Cursor{ID: row.ID})
	}
	return sweep, failed("purge delivered", err)
}

// PurgeUndelivered removes messages of one other terminal state (dead, cancelled or expired) settled longer than keep ago, oldest first from
// a place on, looking at no more than limit of them. A key that a dead message blocked is free again. One that is locked by another
// transaction is passed by. limit is as in PurgeDelivered. One statement.
func (b *Box) PurgeUndelivered(ctx context.Context, scope Scope, state State, from Cursor, keep time.Duration, limit int) (Sweep, error) {
	if state != StateDead && state != StateCancelled && state != StateExpired {
		var found problems
		found.add("State", "is none of dead, cancelled and expired")
		return Sweep{}, failed("purge undelivered", found.err())
	}
	if err := refusePurge(ctx, scope, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge undelivered", err)
	}
	rows, err := b.store.PurgeUndelivered(ctx, db.PurgeUndeliveredParams{
		SchemaName: b.store.Schema(), AllTenants: scope.all, Scope: scope.Names(), Outcome: string(state),
		AfterAt: from.At, AfterID: from.ID, MaxRows: int32(min(limit, maxBatch)), Keep: micros(keep),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.add(row.Removed, row.Busy, Cursor{At: row.SettledAt.UTC(), ID: row.ID})
	}
	if sweep.Count > 0 {
		sweep.Last = sweep.Next // whatever it passed by, nothing before that is left to remove
	}
	return sweep, failed("purge undelivered", err)
}

// PurgeAudit forgets operators' acts longer than keep ago, walking upwards from a place over at most limit of them. limit is as in
// PurgeDelivered. One statement.
func (b *Box) PurgeAudit(ctx context.Context, scope Scope, from Cursor, keep time.Duration, limit int) (Sweep, error) {
	if err := refusePurge(ctx, scope, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge audit", err)
	}
	rows, err := b.store.PurgeAudit(ctx, db.PurgeAuditParams{
		SchemaName: b.store.Schema(), AllTenants: scope.all, Scope: scope.Names(),
		AfterID: from.ID, MaxRows: int32(min(limit, maxBatch)), Keep: micros(keep),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.add(row.Removed, row.Busy, Cursor{ID: row.ID})
	}
	return sweep, failed("purge audit", err)
}

// ExpireUnleased settles as expired what nobody ever leased within its age and grace more, walking upwards in id from a place over at most
// examine open messages. More than 10,000 is 10,000; zero or less does nothing. One statement.
func (b *Box) ExpireUnleased(ctx context.Context, scope Scope, from Cursor, grace time.Duration, examine int) (Sweep, error) {
	var found problems
	if grace < 0 {
		found.addf("grace", "is negative: %v", grace)
	}
	scope.check(&found)
	if err := found.refused(ctx); err != nil || examine <= 0 {
		return Sweep{}, failed("expire unleased", err)
	}
	rows, err := b.store.ExpireUnleased(ctx, db.ExpireUnleasedParams{
		SchemaName: b.store.Schema(), AllTenants: scope.all, Scope: scope.Names(),
		AfterID: from.ID, Examine: int32(min(examine, expireExamine)), Grace: micros(grace),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.add(row.Expired, row.Busy, Cursor{ID: row.ID})
	}
	return sweep, failed("expire unleased", err)
}

const expireExamine = 10_000

// add takes in one row of a statement that sweeps: something done, the last place looked at, or busy.
func (s *Sweep) add(done, busy bool, at Cursor) {
	switch {
	case done:
		s.Count++
		s.Last.ID = max(s.Last.ID, at.ID)
	case busy:
		s.Busy = true
	default:
		s.Next = at
	}
}

// PurgeWorkers forgets workers not seen for keep and counts them. Leases they still hold run out by themselves; a worker that is alive
// after all registers anew. limit is as in PurgeDelivered. One statement.
func (b *Box) PurgeWorkers(ctx context.Context, keep time.Duration, limit int) (int, error) {
	if err := refusePurge(ctx, AllTenants, keep); err != nil || limit <= 0 {
		return 0, failed("purge workers", err)
	}
	ids, err := b.store.PurgeWorkers(ctx, db.PurgeWorkersParams{Keep: micros(keep), MaxRows: int32(min(limit, maxBatch))})
	return len(ids), failed("purge workers", err)
}

// PurgeEvents removes the oldest events of the stream, those recorded longer than keep ago, and no further than every named reader of
// the stream came, or with force whatever they did. It stops at the first event that stays, so it always begins at the front. An event may be the
// source of messages that are kept longer: their source is not found then. limit is as in PurgeDelivered. One statement.
func (b *Box) PurgeEvents(ctx context.Context, keep time.Duration, force bool, limit int) (Sweep, error) {
	if err := refusePurge(ctx, AllTenants, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge events", err)
	}
	rows, err := b.store.PurgeEvents(ctx, db.PurgeEventsParams{
		SchemaName: b.store.Schema(), Keep: micros(keep), Force: force, MaxRows: int32(min(limit, maxBatch)),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.Count, sweep.Busy = sweep.Count+int(row.Removed), sweep.Busy || row.Busy
	}
	return sweep, failed("purge events", err)
}

// PurgeClaims removes claims that ended longer than keep ago, and those whose holder's time ran out as long ago without anybody taking them over,
// oldest first from a place on, looking at no more than limit of them. A key that is removed can be claimed anew. Receipts of a bus's handlers
// stay while the event may still be delivered. limit is as in PurgeDelivered. One statement.
func (b *Box) PurgeClaims(ctx context.Context, scope Scope, from Cursor, keep time.Duration, limit int) (Sweep, error) {
	if err := refusePurge(ctx, scope, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge claims", err)
	}
	rows, err := b.store.PurgeClaims(ctx, db.PurgeClaimsParams{
		SchemaName: b.store.Schema(), AllTenants: scope.all, Tenants: scope.Names(), Keep: micros(keep), MaxRows: int32(min(limit, maxBatch)),
		AfterAt: from.At, AfterTenant: from.claim[0], AfterScope: from.claim[1], AfterKey: from.claim[2],
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.Count += int(row.Removed)
		sweep.add(false, row.Busy, Cursor{At: row.OverAt.UTC(), claim: [3]string{row.Tenant, row.Scope, row.Key}})
	}
	if sweep.Count > 0 {
		sweep.Last = sweep.Next
	}
	return sweep, failed("purge claims", err)
}

// PurgeBatches removes batches that were completed longer than keep ago, oldest first, in steps of at most limit rows, a batch with the last of its
// rows; its messages have a retention of their own. The key of one that is removed begins another. Count is batches and rows. limit is as in
// PurgeDelivered. One statement.
func (b *Box) PurgeBatches(ctx context.Context, scope Scope, keep time.Duration, limit int) (Sweep, error) {
	if err := refusePurge(ctx, scope, keep); err != nil || limit <= 0 {
		return Sweep{}, failed("purge batches", err)
	}
	rows, err := b.store.PurgeBatches(ctx, db.PurgeBatchesParams{
		SchemaName: b.store.Schema(), AllTenants: scope.all, Scope: scope.Names(), Keep: micros(keep), MaxRows: int32(min(limit, maxBatch)),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep.Count, sweep.Busy = sweep.Count+int(row.Batches+row.RowsRemoved), sweep.Busy || row.Busy
	}
	return sweep, failed("purge batches", err)
}

// refusePurge never lets a period that was forgotten remove everything.
func refusePurge(ctx context.Context, scope Scope, keep time.Duration) error {
	var found problems
	if keep < time.Microsecond {
		found.addf("keep", "is %v, it must be at least 1µs", keep)
	}
	scope.check(&found)
	return found.refused(ctx)
}
