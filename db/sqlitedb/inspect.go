package sqlitedb

import (
	"context"
	"math"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// ShowMessage implements db.Inspector.
func (s *Store) ShowMessage(ctx context.Context, arg db.ShowMessageParams) ([]db.ShowMessageRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ShowMessageRow, error) {
		rows, err := q.ShowMessage(ctx, gen.ShowMessageParams{ID: arg.ID, AllTenants: arg.AllTenants, Scope: list(arg.Scope), Now: now})
		return convert(rows, err, func(row gen.ShowMessageRow) db.ShowMessageRow {
			return db.ShowMessageRow{
				ID: row.ID, Tenant: row.Tenant, Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Key: row.Key, OrderKey: row.OrderKey,
				Priority: row.Priority, MaxAge: row.MaxAge, SourcePosition: row.SourcePosition, SourceEventID: row.SourceEventID,
				CreatedAt: instant(row.CreatedAt), Digest: row.Digest, Metadata: row.Metadata, Payload: exact(row.Payload),
				State: row.State, Attempt: row.Attempt, Epoch: row.Epoch, Replays: row.Replays, ReplayedAt: instant(row.ReplayedAt),
				Cause: row.Cause, Reason: row.Reason, Result: row.Result, SettledAt: instant(row.SettledAt), AttemptLimit: row.AttemptLimit,
				DueAt: instant(row.DueAt), BornAt: instant(row.BornAt), ExpiresAt: instant(row.ExpiresAt), LeasedUntil: instant(row.LeasedUntil),
				Worker: row.Worker,
			}
		})
	})
}

// exact is bytes as they were written: the driver reads none as nil.
func exact(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// ListOpen implements db.Inspector.
func (s *Store) ListOpen(ctx context.Context, arg db.ListOpenParams) ([]db.ListOpenRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListOpenRow, error) {
		bound, err := q.ListOpenBound(ctx, gen.ListOpenBoundParams{AfterID: arg.AfterID, Skip: int64(arg.Examine) - 1})
		if err != nil {
			return nil, err
		}
		rows, err := q.ListOpen(ctx, gen.ListOpenParams{
			AfterID: arg.AfterID, Bound: append(bound, math.MaxInt64)[0], AllTenants: arg.AllTenants, Scope: list(arg.Scope),
			Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, State: arg.State, MaxRows: int64(arg.MaxRows), Now: now,
		})
		page, err := convert(rows, err, listed)
		if len(bound) > 0 && len(page) < int(arg.MaxRows) {
			page = append(page, db.ListOpenRow{ID: bound[0]})
		}
		return page, err
	})
}

// ListUndelivered implements db.Inspector.
func (s *Store) ListUndelivered(ctx context.Context, arg db.ListUndeliveredParams) ([]db.ListUndeliveredRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ListUndeliveredRow, error) {
		bound, err := q.ListUndeliveredBound(ctx, gen.ListUndeliveredBoundParams{
			Outcome: arg.Outcome, BeforeAt: micros(arg.BeforeAt), BeforeID: arg.BeforeID, Skip: int64(arg.Examine) - 1,
		})
		if err != nil {
			return nil, err
		}
		last := append(bound, gen.ListUndeliveredBoundRow{SettledAt: math.MinInt64})[0]
		rows, err := q.ListUndelivered(ctx, gen.ListUndeliveredParams{
			Outcome: arg.Outcome, BeforeAt: micros(arg.BeforeAt), BeforeID: arg.BeforeID, BoundAt: last.SettledAt, BoundID: last.MessageID,
			AllTenants: arg.AllTenants, Scope: list(arg.Scope), Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, MaxRows: int64(arg.MaxRows),
		})
		page, err := convert(rows, err, func(row gen.ListUndeliveredRow) db.ListUndeliveredRow {
			return db.ListUndeliveredRow(listed(gen.ListOpenRow(row)))
		})
		if len(bound) > 0 && len(page) < int(arg.MaxRows) {
			page = append(page, db.ListUndeliveredRow{ID: last.MessageID, SettledAt: instant(last.SettledAt)})
		}
		return page, err
	})
}

// ListDelivered implements db.Inspector.
func (s *Store) ListDelivered(ctx context.Context, arg db.ListDeliveredParams) ([]db.ListDeliveredRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ListDeliveredRow, error) {
		bound, err := q.ListDeliveredBound(ctx, gen.ListDeliveredBoundParams{BeforeID: arg.BeforeID, Skip: int64(arg.Examine) - 1})
		if err != nil {
			return nil, err
		}
		rows, err := q.ListDelivered(ctx, gen.ListDeliveredParams{
			BeforeID: arg.BeforeID, Bound: append(bound, 0)[0], AllTenants: arg.AllTenants, Scope: list(arg.Scope),
			Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, MaxRows: int64(arg.MaxRows),
		})
		page, err := convert(rows, err, func(row gen.ListDeliveredRow) db.ListDeliveredRow {
			return db.ListDeliveredRow(listed(gen.ListOpenRow(row)))
		})
		if len(bound) > 0 && len(page) < int(arg.MaxRows) {
			page = append(page, db.ListDeliveredRow{ID: bound[0]})
		}
		return page, err
	})
}

// listed is a row of a list; the three lists return one form of row.
func listed(row gen.ListOpenRow) db.ListOpenRow {
	return db.ListOpenRow{
		ID: row.ID, Tenant: row.Tenant, Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Key: row.Key, OrderKey: row.OrderKey,
		State: row.State, Attempt: row.Attempt, Epoch: row.Epoch, Replays: row.Replays, ReplayedAt: instant(row.ReplayedAt),
		Cause: row.Cause, Reason: row.Reason, CreatedAt: instant(row.CreatedAt), DueAt: instant(row.DueAt),
		LeasedUntil: instant(row.LeasedUntil), SettledAt: instant(row.SettledAt), Matched: true,
	}
}

// ListPauses implements db.Inspector.
func (s *Store) ListPauses(ctx context.Context, arg db.ListPausesParams) ([]db.ListPausesRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ListPausesRow, error) {
		rows, err := q.ListPauses(ctx, gen.ListPausesParams{AllTenants: arg.AllTenants, Scope: list(arg.Scope)})
		return convert(rows, err, func(row gen.ListPausesRow) db.ListPausesRow {
			return db.ListPausesRow{
				Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Tenant: row.Tenant, Mode: row.Mode,
				Actor: row.Actor, Reason: row.Reason, PausedAt: instant(row.PausedAt),
			}
		})
	})
}

// CountLanes implements db.Inspector.
func (s *Store) CountLanes(ctx context.Context, arg db.CountLanesParams) ([]db.CountLanesRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.CountLanesRow, error) {
		lanes, err := q.CountLanes(ctx, gen.CountLanesParams{
			AfterConsumer: arg.AfterConsumer, AfterTarget: arg.AfterTarget, AfterKind: arg.AfterKind, AfterTenant: arg.AfterTenant,
			AfterPriority: int64(arg.AfterPriority), AllTenants: arg.AllTenants, Scope: list(arg.Scope), MaxRows: int64(arg.MaxRows),
		})
		if err != nil {
			return nil, err
		}
		rows := make([]db.CountLanesRow, len(lanes))
		for i, l := range lanes {
			count, err := q.CountLanesOne(ctx, gen.CountLanesOneParams{
				Consumer: l.Consumer, Target: l.Target, Kind: l.Kind, Tenant: l.Tenant, Priority: int64(l.Priority), Cap: int64(arg.Cap), Now: now,
			})
			if err != nil {
				return nil, err
			}
			rows[i] = db.CountLanesRow{
				Consumer: l.Consumer, Target: l.Target, Kind: l.Kind, Tenant: l.Tenant, Priority: l.Priority,
				Due: count.Due, Deferred: count.Later, Leased: count.Leased, Earliest: instant(count.Earliest), Now: instant(now),
			}
		}
		return rows, nil
	})
}

// CountParked implements db.Inspector.
func (s *Store) CountParked(ctx context.Context, arg db.CountParkedParams) ([]db.CountParkedRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.CountParkedRow, error) {
		rows, err := q.CountParked(ctx, gen.CountParkedParams{AllTenants: arg.AllTenants, Scope: list(arg.Scope), Cap: int64(arg.Cap)})
		return convert(rows, err, func(row gen.CountParkedRow) db.CountParkedRow { return db.CountParkedRow(row) })
	})
}

// CountUndelivered implements db.Inspector.
func (s *Store) CountUndelivered(ctx context.Context, arg db.CountUndeliveredParams) ([]db.CountUndeliveredRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.CountUndeliveredRow, error) {
		rows, err := q.CountUndelivered(ctx, gen.CountUndeliveredParams{Cap: int64(arg.Cap)})
		return convert(rows, err, func(row gen.CountUndeliveredRow) db.CountUndeliveredRow { return db.CountUndeliveredRow(row) })
	})
}

// ReadHealth implements db.Inspector. SQLite has no dead rows, and no snapshot keeps space from being used again but that of the log.
func (s *Store) ReadHealth(ctx context.Context, _ db.ReadHealthParams) ([]db.ReadHealthRow, error) {
	const countedRows = 100_000
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ReadHealthRow, error) {
		row, err := q.ReadHealth(ctx, gen.ReadHealthParams{Cap: countedRows})
		return []db.ReadHealthRow{{
			LiveRows: row.LiveRows, SettledEstimate: row.SettledEstimate, ServerVersion: row.ServerVersion, Now: instant(now),
		}}, err
	})
}
