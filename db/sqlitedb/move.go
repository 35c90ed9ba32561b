package sqlitedb

import (
	"context"
	"math"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/move"
)

// sliceBytes bounds the payloads of a slice, but for the last of them.
const sliceBytes = 4 << 20

var _ move.Source = (*Store)(nil)

// MoveHold is for fencepost move alone: it pauses everything, unless it is, and ends the leases that are over.
func (s *Store) MoveHold(ctx context.Context, actor, reason string) (move.Leases, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) (move.Leases, error) {
		paused, err := q.MovePaused(ctx)
		if err == nil && !paused {
			err = pause(ctx, q, now, db.PauseLaneParams{Consumer: "*", Target: "*", Kind: "*", Tenant: "*", Actor: actor, Reason: reason})
		}
		if err != nil {
			return move.Leases{}, err
		}
		latest := after(now, db.LongestLease.Microseconds())
		if err := q.MoveRevoke(ctx, gen.MoveRevokeParams{Now: now, Latest: latest}); err != nil {
			return move.Leases{}, err
		}
		if err := q.MoveUnorder(ctx, gen.MoveUnorderParams{Now: now, Latest: latest}); err != nil {
			return move.Leases{}, err
		}
		live, err := q.MoveLeased(ctx, gen.MoveLeasedParams{Now: now, Latest: latest})
		return move.Leases{Live: live.Leased, Until: instant(live.Until)}, err
	})
}

// MoveSize is for fencepost move alone: how much there is, the highest ids ever given, and which stream it is.
func (s *Store) MoveSize(ctx context.Context) (move.Size, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) (move.Size, error) {
		size, err := q.MoveSize(ctx)
		return move.Size{
			Rows: size.Total, Message: size.Message, Act: size.Audit, Worker: size.Worker, Event: size.Event, Batches: size.Batches,
			Stream: size.Stream, PurgedPosition: size.PurgedPosition, PurgedDigest: size.PurgedDigest,
		}, err
	})
}

// MoveOut is for fencepost move alone: the rows after an id, at most so many of a table, and all that are left when that reaches the last id.
func (s *Store) MoveOut(ctx context.Context, after int64, rows int) (move.Slice, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) (move.Slice, error) {
		upto, err := q.MoveBound(ctx, gen.MoveBoundParams{AfterID: after, MaxBytes: sliceBytes, MaxRows: int64(rows)})
		if err != nil {
			return move.Slice{}, err
		}
		if upto == 0 {
			upto = math.MaxInt64
		}
		out, err := q.MoveOut(ctx, gen.MoveOutParams{AfterID: after, Upto: upto})
		return move.Slice{
			After: after, Upto: upto, Count: out.Count,
			Messages: out.Messages, Queue: out.Queue, Settlements: out.Settlements, OrderLeases: out.OrderLeases, Audits: out.Audits, Pauses: out.Pauses,
			Events: out.Events, Claims: out.Claims, Readers: out.Readers, Incarnations: out.Incarnations, ClaimsInAll: out.ClaimsInAll,
		}, err
	})
}
