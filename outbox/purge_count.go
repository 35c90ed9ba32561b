package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// Periods say for how long settled messages are kept; zero keeps them for ever.
type Periods struct {
	Delivered, Dead, Cancelled, Expired time.Duration
}

// CountOld counts what PurgeDelivered and PurgeUndelivered with these periods would remove, walking upwards in id from a place over at most
// limit settlements, and says where to go on; zero at the end. limit is as in PurgeDelivered. One statement. Retryable.
func (b *Box) CountOld(ctx context.Context, scope Scope, from Cursor, keep Periods, limit int) (map[State]int, Cursor, error) {
	var found problems
	for field, period := range map[string]time.Duration{
		"Delivered": keep.Delivered, "Dead": keep.Dead, "Cancelled": keep.Cancelled, "Expired": keep.Expired,
	} {
		if period < 0 || period > 0 && period < time.Microsecond {
			found.addf(field, "is %v, it must be zero or at least 1µs", period)
		}
	}
	scope.check(&found)
	if err := found.refused(ctx); err != nil || limit <= 0 {
		return nil, Cursor{}, failed("count old", err)
	}
	rows, err := b.store.CountOld(ctx, db.CountOldParams{
		AllTenants: scope.all, Scope: scope.Names(), AfterID: from.ID, MaxRows: int32(min(limit, maxBatch)),
		KeepDelivered: micros(keep.Delivered), KeepDead: micros(keep.Dead),
		KeepCancelled: micros(keep.Cancelled), KeepExpired: micros(keep.Expired),
	})
	old, next := map[State]int{}, Cursor{}
	for _, row := range rows {
		if row.Outcome == "" {
			next.ID = row.Last
		} else {
			old[State(row.Outcome)] = int(row.Old)
		}
	}
	return old, next, failed("count old", err)
}

// CountOverdue counts what ExpireUnleased would settle, in the same steps. One statement. Retryable.
func (b *Box) CountOverdue(ctx context.Context, scope Scope, from Cursor, grace time.Duration, examine int) (Sweep, error) {
	var found problems
	if grace < 0 {
		found.addf("grace", "is negative: %v", grace)
	}
	scope.check(&found)
	if err := found.refused(ctx); err != nil || examine <= 0 {
		return Sweep{}, failed("count overdue", err)
	}
	rows, err := b.store.CountOverdue(ctx, db.CountOverdueParams{
		AllTenants: scope.all, Scope: scope.Names(), AfterID: from.ID, Examine: int32(min(examine, expireExamine)), Grace: micros(grace),
	})
	var sweep Sweep
	for _, row := range rows {
		sweep = Sweep{Count: int(row.Overdue), Next: Cursor{ID: row.Last}}
	}
	return sweep, failed("count overdue", err)
}
