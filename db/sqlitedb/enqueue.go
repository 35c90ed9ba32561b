package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// Enqueue implements db.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, tx db.Tx, arg db.EnqueueParams) ([]db.EnqueueRow, error) {
	none := make([]int64, len(arg.Keys))
	rows, err := s.EnqueueLeased(ctx, tx, db.EnqueueLeasedParams{
		Tenants: arg.Tenants, Consumers: arg.Consumers, Targets: arg.Targets, Kinds: arg.Kinds, Keys: arg.Keys, OrderKeys: arg.OrderKeys,
		Priorities: arg.Priorities, Digests: arg.Digests, Metadatas: arg.Metadatas, Payloads: arg.Payloads, SourcePositions: arg.SourcePositions,
		SourceEventIds: arg.SourceEventIds, MaxAges: arg.MaxAges, DueAts: arg.DueAts, Delays: arg.Delays, Leases: none, Workers: none,
	})
	return convert(rows, err, func(row db.EnqueueLeasedRow) db.EnqueueRow { return db.EnqueueRow{ID: row.ID, Stored: row.Stored} })
}

// EnqueueLeased implements db.Enqueuer.
func (s *Store) EnqueueLeased(ctx context.Context, tx db.Tx, arg db.EnqueueLeasedParams) ([]db.EnqueueLeasedRow, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]db.EnqueueLeasedRow, error) {
		rows := make([]db.EnqueueLeasedRow, len(arg.Keys))
		for i := range rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			ids, err := q.EnqueueMessage(whole, gen.EnqueueMessageParams{
				Tenant: arg.Tenants[i], Consumer: arg.Consumers[i], Target: arg.Targets[i], Kind: arg.Kinds[i], Key: arg.Keys[i],
				OrderKey: arg.OrderKeys[i], Priority: int64(arg.Priorities[i]), Digest: arg.Digests[i], Metadata: arg.Metadatas[i],
				Payload: arg.Payloads[i], SourcePosition: arg.SourcePositions[i], SourceEventID: arg.SourceEventIds[i],
				MaxAge: arg.MaxAges[i], CreatedAt: now,
			})
			if err != nil {
				return nil, err
			}
			if len(ids) == 0 {
				continue
			}
			due := max(micros(arg.DueAts[i]), after(now, arg.Delays[i])) // a due time in the past means now
			leased, err := bornLeased(whole, q, arg, i, due == now)
			if err != nil {
				return nil, err
			}
			row := db.EnqueueLeasedRow{ID: ids[0], Stored: true}
			if leased {
				row.LeasedAt = now
				err = q.EnqueueLeasedDue(whole, gen.EnqueueLeasedDueParams{
					MessageID: ids[0], Consumer: arg.Consumers[i], Target: arg.Targets[i], Kind: arg.Kinds[i], Tenant: arg.Tenants[i],
					Priority: int64(arg.Priorities[i]), DueAt: due, ExpiresAt: expiry(due, arg.MaxAges[i]),
					Token: arg.Token, LeasedBy: arg.Workers[i], LeasedUntil: after(now, arg.Leases[i]),
				})
			} else {
				err = q.EnqueueDue(whole, gen.EnqueueDueParams{
					MessageID: ids[0], Consumer: arg.Consumers[i], Target: arg.Targets[i], Kind: arg.Kinds[i], Tenant: arg.Tenants[i],
					OrderKey: arg.OrderKeys[i], Priority: int64(arg.Priorities[i]), DueAt: due, ExpiresAt: expiry(due, arg.MaxAges[i]),
				})
			}
			if err != nil {
				return nil, err
			}
			rows[i] = row
		}
		return rows, nil
	})
}

// bornLeased says whether the message of one place is: it was asked for, and may be leased now.
func bornLeased(ctx context.Context, q *gen.Queries, arg db.EnqueueLeasedParams, i int, due bool) (bool, error) {
	if arg.Leases[i] <= 0 || arg.OrderKeys[i] != "" || !due {
		return false, nil
	}
	open, err := q.LeaseDueLanes(ctx, gen.LeaseDueLanesParams{
		Lanes: list([]laneName{{arg.Kinds[i], arg.Tenants[i]}}), AllTenants: true, Scope: "[]", Consumer: arg.Consumers[i], Target: arg.Targets[i],
	})
	return len(open) > 0, err
}

// expiry is when a message born at the instant is too old, a maxAge of 0 being none.
func expiry(born, maxAge int64) int64 {
	if maxAge == 0 {
		return forever
	}
	return min(after(born, maxAge), forever)
}

// FindKeys implements db.Enqueuer.
func (s *Store) FindKeys(ctx context.Context, tx db.Tx, arg db.FindKeysParams) ([]db.FindKeysRow, error) {
	type asked struct {
		Tenant   string `json:"tenant"`
		Consumer string `json:"consumer"`
		Key      string `json:"key"`
		Digest   string `json:"digest"`
	}
	given := make([]asked, len(arg.Keys))
	for i := range given {
		given[i] = asked{arg.Tenants[i], arg.Consumers[i], arg.Keys[i], hexed(arg.Digests[i])}
	}
	return callers(ctx, s, tx, reads, func(whole context.Context, q *gen.Queries, now int64) ([]db.FindKeysRow, error) {
		rows, err := q.FindKeys(whole, gen.FindKeysParams{Now: now, Given: list(given)})
		return convert(rows, err, func(row gen.FindKeysRow) db.FindKeysRow { return db.FindKeysRow(row) })
	})
}
