package sqlitedb

import (
	"context"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// AuditMessages implements db.Doctor.
func (s *Store) AuditMessages(ctx context.Context, arg db.AuditMessagesParams) ([]db.AuditMessagesRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.AuditMessagesRow, error) {
		bound, err := q.AuditMessagesBound(ctx, gen.AuditMessagesBoundParams{AfterID: arg.AfterID, Skip: int64(arg.Examine) - 1})
		if err != nil {
			return nil, err
		}
		upto := bound.Upto
		if upto == 0 {
			upto = math.MaxInt64
		}
		messages, err := q.AuditMessagesCount(ctx, gen.AuditMessagesCountParams{AfterID: arg.AfterID, Upto: upto})
		if err != nil {
			return nil, err
		}
		found, err := q.AuditMessages(ctx, gen.AuditMessagesParams{AfterID: arg.AfterID, Upto: upto, Now: now})
		rows := []db.AuditMessagesRow{}
		for _, row := range found {
			for problem := range strings.Lines(row.Problems) {
				rows = append(rows, db.AuditMessagesRow{ID: row.ID, Problem: strings.TrimSpace(problem)})
			}
		}
		return append(rows, db.AuditMessagesRow{ID: bound.Upto, Messages: messages, Highest: bound.Highest}), err
	})
}

// ListHeads implements db.Doctor.
func (s *Store) ListHeads(ctx context.Context, arg db.ListHeadsParams) ([]db.ListHeadsRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListHeadsRow, error) {
		looked, err := q.ListHeads(ctx, gen.ListHeadsParams{
			AfterConsumer: arg.AfterConsumer, AfterTarget: arg.AfterTarget, AfterTenant: arg.AfterTenant, AfterOrderKey: arg.AfterOrderKey,
			Examine: int64(arg.Examine), BornBefore: now - arg.Age, Now: now,
		})
		at := instant(now)
		rows, closing := []db.ListHeadsRow{}, db.ListHeadsRow{LeasedUntil: at, DueAt: at, BornAt: at, Now: at}
		for _, row := range looked {
			if row.Final {
				closing.Consumer, closing.Target, closing.Tenant, closing.OrderKey = row.Consumer, row.Target, row.Tenant, row.OrderKey
			}
			if row.Held {
				rows = append(rows, db.ListHeadsRow{
					Consumer: row.Consumer, Target: row.Target, Tenant: row.Tenant, OrderKey: row.OrderKey, ID: row.ID, Kind: row.Kind,
					Attempt: row.Attempt, Parked: row.Parked, Paused: row.Paused, Blocker: row.Blocker,
					LeasedUntil: instant(row.LeasedUntil), DueAt: instant(row.DueAt), BornAt: instant(row.BornAt), Now: at,
				})
			}
		}
		return append(rows, closing), err
	})
}

// ReadHorizon implements db.Doctor.
func (s *Store) ReadHorizon(ctx context.Context) ([]db.ReadHorizonRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ReadHorizonRow, error) {
		rows, err := q.ReadHorizon(ctx)
		return convert(rows, err, func(newest int64) db.ReadHorizonRow { return db.ReadHorizonRow{Newest: newest} })
	})
}

// ListReaders implements db.Doctor.
func (s *Store) ListReaders(ctx context.Context, arg db.ListReadersParams) ([]db.ListReadersRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListReadersRow, error) {
		rows, err := q.ListReaders(ctx, gen.ListReadersParams{AfterName: arg.AfterName, MaxRows: int64(arg.MaxRows)})
		return convert(rows, err, func(row gen.ListReadersRow) db.ListReadersRow {
			r := db.ListReadersRow{Name: row.Name, Position: row.Position, SavedAt: instant(row.SavedAt), Standing: row.Standing}
			if r.Standing == db.StandingGood {
				r.Behind = max(now-row.Oldest, 0)
			}
			return r
		})
	})
}

// ListLapsedClaims implements db.Doctor.
func (s *Store) ListLapsedClaims(ctx context.Context, arg db.ListLapsedClaimsParams) ([]db.ListLapsedClaimsRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListLapsedClaimsRow, error) {
		rows, err := q.ListLapsedClaims(ctx, gen.ListLapsedClaimsParams{HeldBefore: now - arg.Age, MaxRows: int64(arg.MaxRows)})
		return convert(rows, err, func(row gen.ListLapsedClaimsRow) db.ListLapsedClaimsRow {
			return db.ListLapsedClaimsRow{
				Tenant: row.Tenant, Scope: row.Scope, Key: row.Key, Epoch: row.Epoch, HeldUntil: instant(row.HeldUntil), Now: instant(now),
			}
		})
	})
}

// ListStuckBatches implements db.Doctor.
func (s *Store) ListStuckBatches(ctx context.Context, arg db.ListStuckBatchesParams) ([]db.ListStuckBatchesRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListStuckBatchesRow, error) {
		rows, err := q.ListStuckBatches(ctx, gen.ListStuckBatchesParams{CreatedBefore: now - arg.Age, Examine: int64(arg.Examine)})
		return convert(rows, err, func(row gen.ListStuckBatchesRow) db.ListStuckBatchesRow {
			return db.ListStuckBatchesRow{
				ID: row.ID, Tenant: row.Tenant, Consumer: row.Consumer, Key: row.Key, CreatedAt: instant(row.CreatedAt), Broken: row.Broken,
				Now: instant(now),
			}
		})
	})
}

// ReadSurroundings implements db.Doctor. Its facts are SQLite's own; log_bytes is the size of the write-ahead log.
func (s *Store) ReadSurroundings(ctx context.Context, _ db.ReadSurroundingsParams) ([]db.ReadSurroundingsRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ReadSurroundingsRow, error) {
		facts, err := q.ReadSurroundings(ctx)
		rows, err := convert(facts, err, func(row gen.ReadSurroundingsRow) db.ReadSurroundingsRow { return db.ReadSurroundingsRow(row) })
		for _, row := range rows {
			if row.Name != "path" {
				continue
			}
			if log, err := os.Stat(row.Value + "-wal"); err == nil {
				rows = append(rows, db.ReadSurroundingsRow{Section: "setting", Name: "log_bytes", Value: strconv.FormatInt(log.Size(), 10)})
			}
		}
		return rows, err
	})
}
