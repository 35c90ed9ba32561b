package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// Renew implements db.Leaser.
func (s *Store) Renew(ctx context.Context, arg db.RenewParams) ([]db.RenewRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.RenewRow, error) {
		held, err := q.LeaseHeld(ctx, gen.LeaseHeldParams{Given: holdings(arg.Ids, arg.Tokens), Live: true, Now: now})
		if err != nil {
			return nil, err
		}
		ids, ordered := make([]int64, len(held)), []int64{}
		for i, h := range held {
			ids[i] = h.MessageID
			if h.OrderKey != "" {
				ordered = append(ordered, h.MessageID)
			}
		}
		until, latest := after(now, arg.Lease), after(now, arg.LongestLease)
		if err := q.RenewQueue(ctx, gen.RenewQueueParams{Ids: list(ids), Until: until, Latest: latest}); err != nil {
			return nil, err
		}
		for _, id := range ordered {
			if err := q.RenewOrder(ctx, gen.RenewOrderParams{MessageID: id, Until: until, Latest: latest}); err != nil {
				return nil, err
			}
		}
		rows, err := q.RenewRead(ctx, gen.RenewReadParams{Ids: list(ids)})
		return convert(rows, err, func(row gen.RenewReadRow) db.RenewRow {
			return db.RenewRow{ID: row.MessageID, LeasedUntil: instant(row.LeasedUntil), PauseMode: row.PauseMode}
		})
	})
}

// Release implements db.Leaser.
func (s *Store) Release(ctx context.Context, arg db.ReleaseParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		held, err := q.LeaseHeld(ctx, gen.LeaseHeldParams{Given: holdings(arg.Ids, arg.Tokens), Now: now})
		if err != nil {
			return nil, err
		}
		ids, started := make([]int64, len(held)), map[bool][]int64{}
		for i, h := range held {
			ids[i] = h.MessageID
			unsure := arg.Unsures[h.Place]
			started[unsure] = append(started[unsure], h.MessageID)
		}
		for unsure, ids := range started {
			if err := q.ReleaseQueue(ctx, gen.ReleaseQueueParams{Ids: list(ids), Unsure: unsure}); err != nil {
				return nil, err
			}
		}
		return ids, unorder(ctx, q, ids)
	})
}
