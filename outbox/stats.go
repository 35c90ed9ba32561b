package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// CountCap is where counting stops: a count of CountCap means so many or more.
const CountCap = 10_000

// Stats is a picture of the box, cheap whatever its size. Its parts are read one after the other.
type Stats struct {
	// Lanes have pending messages; more than 1,000 lanes are not listed, and MoreLanes says so.
	Lanes     []LaneCount
	MoreLanes bool
	// Parked messages wait for an operator. CountCap holds for their sum.
	Parked []ParkedCount
	// Dead, Cancelled and Expired count over all tenants, whatever the scope.
	Dead, Cancelled, Expired int64
	Health                   Health
}

// A LaneCount counts the pending messages of one lane.
type LaneCount struct {
	Consumer, Target string
	Lane
	// Due now and free, Deferred to a later time, Leased. CountCap holds for their sum, earliest due first.
	Due, Deferred, Leased int64
	// Earliest due time, and Age, how long ago that is by the database's clock: zero when it lies ahead.
	Earliest time.Time
	Age      time.Duration
}

// A ParkedCount counts parked messages.
type ParkedCount struct {
	Consumer, Target, Kind string
	Parked                 int64
}

// Health is what slows a queue down.
type Health struct {
	// OldestSnapshot is the age of the oldest transaction that keeps finished rows from being cleaned up.
	OldestSnapshot time.Duration
	// LiveRows and DeadRows of the queue, and SettledEstimate, are the server's estimates.
	LiveRows, DeadRows, SettledEstimate int64
	ServerVersion                       string
	Now                                 time.Time
}

// Stats counts what is in the scope, with counts capped at CountCap. Four statements. Retryable.
func (b *Box) Stats(ctx context.Context, scope Scope) (Stats, error) {
	var found problems
	scope.check(&found)
	if err := found.refused(ctx); err != nil {
		return Stats{}, failed("stats", err)
	}
	var stats Stats
	for _, read := range []func(context.Context, Scope, *Stats) error{b.countLanes, b.countParked, b.countUndelivered, b.readHealth} {
		if err := read(ctx, scope, &stats); err != nil {
			return Stats{}, failed("stats", err)
		}
	}
	return stats, nil
}

func (b *Box) countLanes(ctx context.Context, scope Scope, stats *Stats) error {
	rows, err := b.store.CountLanes(ctx, db.CountLanesParams{
		Cap: CountCap, AllTenants: scope.all, Scope: scope.Names(), MaxRows: maxBatch, AfterPriority: db.FirstPriority,
	})
	stats.MoreLanes = len(rows) == maxBatch
	for _, row := range rows {
		stats.Lanes = append(stats.Lanes, LaneCount{
			Consumer: row.Consumer, Target: row.Target,
			Lane: Lane{Kind: row.Kind, Tenant: row.Tenant, Priority: int16(row.Priority)},
			Due:  row.Due, Deferred: row.Deferred, Leased: row.Leased,
			Earliest: row.Earliest.UTC(),
			Age:      max(row.Now.Sub(row.Earliest), 0),
		})
	}
	return err
}

func (b *Box) countParked(ctx context.Context, scope Scope, stats *Stats) error {
	rows, err := b.store.CountParked(ctx, db.CountParkedParams{AllTenants: scope.all, Scope: scope.Names(), Cap: CountCap})
	for _, row := range rows {
		stats.Parked = append(stats.Parked, ParkedCount(row))
	}
	return err
}

func (b *Box) countUndelivered(ctx context.Context, _ Scope, stats *Stats) error {
	rows, err := b.store.CountUndelivered(ctx, db.CountUndeliveredParams{Cap: CountCap})
	for _, row := range rows {
		switch State(row.Outcome) {
		case StateDead:
			stats.Dead = row.Settled
		case StateCancelled:
			stats.Cancelled = row.Settled
		case StateExpired:
			stats.Expired = row.Settled
		}
	}
	return err
}

func (b *Box) readHealth(ctx context.Context, _ Scope, stats *Stats) error {
	rows, err := b.store.ReadHealth(ctx, db.ReadHealthParams{SchemaName: b.store.Schema()})
	for _, row := range rows {
		stats.Health = Health{
			OldestSnapshot:  time.Duration(row.OldestSnapshot) * time.Microsecond,
			LiveRows:        row.LiveRows,
			DeadRows:        row.DeadRows,
			SettledEstimate: row.SettledEstimate,
			ServerVersion:   row.ServerVersion,
			Now:             row.Now.UTC(),
		}
	}
	return err
}
