package janitor

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// The classes, in the order they are worked on. What lapsed comes first: it is not old enough to be purged in the same tick.
const (
	overdue   = "overdue"
	delivered = "delivered"
	dead      = "dead"
	cancelled = "cancelled"
	expired   = "expired"
	acts      = "audit"
	workers   = "workers"
	events    = "events"
	claims    = "claims"
	batches   = "batches"
)

// states of the classes whose messages are removed.
var states = map[string]outbox.State{
	delivered: outbox.StateDelivered, dead: outbox.StateDead, cancelled: outbox.StateCancelled, expired: outbox.StateExpired,
}

// walks are fresh walks over all classes that are not kept for ever.
func (j *Janitor) walks() []*walk {
	c := j.config
	undelivered := func(state outbox.State, keep time.Duration) func(context.Context, outbox.Cursor, int) (outbox.Sweep, error) {
		return func(ctx context.Context, from outbox.Cursor, limit int) (outbox.Sweep, error) {
			return j.box.PurgeUndelivered(ctx, c.Scope, state, from, keep, limit)
		}
	}
	all := []*walk{{class: overdue, sweep: func(ctx context.Context, from outbox.Cursor, limit int) (outbox.Sweep, error) {
		return j.box.ExpireUnleased(ctx, c.Scope, from, c.Grace, limit)
	}}}
	for _, w := range []struct {
		class string
		keep  time.Duration
		sweep func(context.Context, outbox.Cursor, int) (outbox.Sweep, error)
	}{
		{delivered, c.Delivered, func(ctx context.Context, from outbox.Cursor, limit int) (outbox.Sweep, error) {
			return j.box.PurgeDelivered(ctx, c.Scope, from, c.Delivered, limit)
		}},
		{dead, c.Dead, undelivered(outbox.StateDead, c.Dead)},
		{cancelled, c.Cancelled, undelivered(outbox.StateCancelled, c.Cancelled)},
		{expired, c.Expired, undelivered(outbox.StateExpired, c.Expired)},
		{acts, c.Audit, func(ctx context.Context, from outbox.Cursor, limit int) (outbox.Sweep, error) {
			return j.box.PurgeAudit(ctx, c.Scope, from, c.Audit, limit)
		}},
		{workers, c.workers(), func(ctx context.Context, _ outbox.Cursor, limit int) (outbox.Sweep, error) {
			n, err := j.box.PurgeWorkers(ctx, c.workers(), limit)
			return outbox.Sweep{Count: n}, err
		}},
		{events, c.Events, func(ctx context.Context, _ outbox.Cursor, limit int) (outbox.Sweep, error) {
			return j.box.PurgeEvents(ctx, c.Events, c.ForceEvents, limit)
		}},
		{claims, c.Claims, func(ctx context.Context, from outbox.Cursor, limit int) (outbox.Sweep, error) {
			return j.box.PurgeClaims(ctx, c.Scope, from, c.Claims, limit)
		}},
		{batches, c.Batches, func(ctx context.Context, _ outbox.Cursor, limit int) (outbox.Sweep, error) {
			return j.box.PurgeBatches(ctx, c.Scope, c.Batches, limit)
		}},
	} {
		if w.keep != KeepForever {
			all = append(all, &walk{class: w.class, sweep: w.sweep})
		}
	}
	return all
}

// of is where a report counts a class.
func (r *Report) of(class string) *int {
	return map[string]*int{
		overdue: &r.Overdue, delivered: &r.Purged.Delivered, dead: &r.Purged.Dead, cancelled: &r.Purged.Cancelled, expired: &r.Purged.Expired,
		acts: &r.Acts, workers: &r.Workers, events: &r.Events, claims: &r.Claims, batches: &r.Batches,
	}[class]
}

// workers are kept as long as any settlement that names them.
func (c Config) workers() time.Duration { return max(c.Delivered, c.Dead, c.Cancelled, c.Expired) }
