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
