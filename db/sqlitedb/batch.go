package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// AddBatch implements db.Batcher.
func (s *Store) AddBatch(ctx context.Context, arg db.AddBatchParams) ([]db.AddBatchRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.AddBatchRow, error) {
		added, err := q.AddBatch(ctx, gen.AddBatchParams{
			Tenant: arg.Tenant, Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, Key: arg.Key, Digest: arg.Digest,
			CompleteConsumer: arg.CompleteConsumer, CompleteTarget: arg.CompleteTarget, CompleteKind: arg.CompleteKind, CompleteKey: arg.CompleteKey,
			CompletePriority: int64(arg.CompletePriority), CompleteDigest: arg.CompleteDigest, CompleteMetadata: arg.CompleteMetadata,
			CompletePayload: arg.CompletePayload, CreatedAt: now,
		})
		if err != nil || len(added) > 0 {
			return convert(added, err, func(id int64) db.AddBatchRow { return db.AddBatchRow{ID: id, Added: true, SameDigest: true} })
		}
		found, err := q.AddBatchFound(ctx, gen.AddBatchFoundParams{Tenant: arg.Tenant, Consumer: arg.Consumer, Key: arg.Key, Digest: arg.Digest})
		return convert(found, err, func(row gen.AddBatchFoundRow) db.AddBatchRow {
			return db.AddBatchRow{ID: row.ID, SameDigest: row.SameDigest}
		})
	})
}

// FindBatch implements db.Batcher.
func (s *Store) FindBatch(ctx context.Context, arg db.FindBatchParams) ([]int64, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]int64, error) {
		return q.FindBatch(ctx, gen.FindBatchParams{
			Tenant: arg.Tenant, Consumer: arg.Consumer, Key: arg.Key, AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
	})
}

// AddBatchRows implements db.Batcher.
func (s *Store) AddBatchRows(ctx context.Context, tx db.Tx, arg db.AddBatchRowsParams) ([]int32, error) {
	type row struct {
		Number    int32  `json:"number"`
		MessageID int64  `json:"message_id"`
		Reason    string `json:"reason"`
	}
	given := make([]row, len(arg.Numbers))
	for i := range given {
		given[i] = row{arg.Numbers[i], arg.MessageIds[i], arg.Reasons[i]}
	}
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, _ int64) ([]int32, error) {
		return q.AddBatchRows(whole, gen.AddBatchRowsParams{
			Given: list(given), BatchID: arg.BatchID, AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
	})
}

// FindBatchRows implements db.Batcher.
func (s *Store) FindBatchRows(ctx context.Context, tx db.Tx, arg db.FindBatchRowsParams) ([]db.FindBatchRowsRow, error) {
	return callers(ctx, s, tx, reads, func(whole context.Context, q *gen.Queries, _ int64) ([]db.FindBatchRowsRow, error) {
		rows, err := q.FindBatchRows(whole, gen.FindBatchRowsParams{
			BatchID: arg.BatchID, AllTenants: arg.AllTenants, Scope: list(arg.Scope), Numbers: list(arg.Numbers),
		})
		return convert(rows, err, func(row gen.FindBatchRowsRow) db.FindBatchRowsRow { return db.FindBatchRowsRow(row) })
	})
}

// SealBatch implements db.Batcher.
func (s *Store) SealBatch(ctx context.Context, arg db.SealBatchParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		return q.SealBatch(ctx, gen.SealBatchParams{ID: arg.ID, AllTenants: arg.AllTenants, Scope: list(arg.Scope), Now: now})
	})
}

// CountBatch implements db.Batcher.
func (s *Store) CountBatch(ctx context.Context, arg db.CountBatchParams) ([]db.CountBatchRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.CountBatchRow, error) {
		rows, err := q.CountBatch(ctx, gen.CountBatchParams{
			Detail: arg.Detail, ID: arg.ID, AllTenants: arg.AllTenants, Scope: list(arg.Scope), Now: now,
		})
		return convert(rows, err, func(row gen.CountBatchRow) db.CountBatchRow {
			return db.CountBatchRow{
				ID: row.ID, Tenant: row.Tenant, Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Key: row.Key,
				CreatedAt: instant(row.CreatedAt), SealedAt: instant(row.SealedAt), CompletedAt: instant(row.CompletedAt), Run: row.Run,
				CompleteConsumer: row.CompleteConsumer, CompleteTarget: row.CompleteTarget, CompleteKind: row.CompleteKind, CompleteKey: row.CompleteKey,
				Total: row.Open + row.Delivered + row.Dead + row.Cancelled + row.Expired + row.Rejected,
				Open:  row.Open, Delivered: row.Delivered, Dead: row.Dead, Cancelled: row.Cancelled, Expired: row.Expired, Rejected: row.Rejected,
				Leased: row.Leased, Parked: row.Parked,
			}
		})
	})
}

// ListBatches implements db.Batcher.
func (s *Store) ListBatches(ctx context.Context, arg db.ListBatchesParams) ([]db.ListBatchesRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ListBatchesRow, error) {
		seen, err := q.ListBatches(ctx, gen.ListBatchesParams{
			AllTenants: arg.AllTenants, Scope: list(arg.Scope), Consumer: arg.Consumer, Unfinished: arg.Unfinished, BeforeID: arg.BeforeID,
			Examine: int64(arg.Examine),
		})
		rows := []db.ListBatchesRow{}
		for _, b := range seen {
			if !b.Matched {
				continue
			}
			if len(rows) == int(arg.MaxRows) {
				return rows, err
			}
			rows = append(rows, db.ListBatchesRow{
				ID: b.ID, Tenant: b.Tenant, Consumer: b.Consumer, Target: b.Target, Kind: b.Kind, Key: b.Key, CreatedAt: instant(b.CreatedAt),
				SealedAt: instant(b.SealedAt), CompletedAt: instant(b.CompletedAt), Run: b.Run, Matched: true,
			})
		}
		if n := len(seen); n > 0 && n == int(arg.Examine) && len(rows) < int(arg.MaxRows) {
			rows = append(rows, db.ListBatchesRow{ID: seen[n-1].ID})
		}
		return rows, err
	})
}

// ListBatchRows implements db.Batcher.
func (s *Store) ListBatchRows(ctx context.Context, arg db.ListBatchRowsParams) ([]db.ListBatchRowsRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListBatchRowsRow, error) {
		page := gen.ListBatchRowsPickParams{
			BatchID: arg.BatchID, AllTenants: arg.AllTenants, Scope: list(arg.Scope), AfterNumber: int64(arg.AfterNumber), MaxRows: int64(arg.MaxRows),
		}
		var numbers []int32
		var err error
		if arg.Fate < 0 {
			numbers, err = q.ListBatchRowsPick(ctx, page)
		} else {
			numbers, err = q.ListBatchRowsOf(ctx, gen.ListBatchRowsOfParams{
				BatchID: page.BatchID, AllTenants: page.AllTenants, Scope: page.Scope, Fate: arg.Fate, AfterNumber: page.AfterNumber, MaxRows: page.MaxRows,
			})
		}
		if err != nil || len(numbers) == 0 {
			return nil, err
		}
		rows, err := q.ListBatchRows(ctx, gen.ListBatchRowsParams{BatchID: arg.BatchID, Numbers: list(numbers), Now: now})
		return convert(rows, err, func(row gen.ListBatchRowsRow) db.ListBatchRowsRow {
			return db.ListBatchRowsRow{
				Number: row.Number, MessageID: row.MessageID, Fate: row.Fate, Key: row.MessageKey, State: row.State, Attempt: row.Attempt,
				Cause: row.Cause, Reason: row.Reason, Result: row.Result, SettledAt: instant(row.SettledAt),
			}
		})
	})
}

// PurgeBatches implements db.Purger.
func (s *Store) PurgeBatches(ctx context.Context, arg db.PurgeBatchesParams) ([]db.PurgeBatchesRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.PurgeBatchesRow, error) {
		var row db.PurgeBatchesRow
		old, err := q.PurgeBatchesPick(ctx, gen.PurgeBatchesPickParams{
			Cutoff: after(now, -arg.Keep), AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
		if err != nil || len(old) == 0 {
			return []db.PurgeBatchesRow{row}, err
		}
		gone, err := q.PurgeBatchesRows(ctx, gen.PurgeBatchesRowsParams{BatchID: old[0], MaxRows: int64(arg.MaxRows)})
		if row.RowsRemoved = int64(len(gone)); err == nil && len(gone) < int(arg.MaxRows) {
			row.Batches, err = 1, q.PurgeBatchesErase(ctx, gen.PurgeBatchesEraseParams{ID: old[0]})
		}
		return []db.PurgeBatchesRow{row}, err
	})
}
