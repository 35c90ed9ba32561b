package memdb

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// PurgeDelivered implements db.Purger.
func (s *Store) PurgeDelivered(ctx context.Context, arg db.PurgeDeliveredParams) ([]db.PurgeDeliveredRow, error) {
	return run(ctx, s, "PurgeDelivered", arg, func(st *statement) []db.PurgeDeliveredRow {
		seen := st.settled(byID, arg.MaxRows, func(r tables.Settlement) bool { return r.MessageID > arg.AfterID })
		rows, cutoff := []db.PurgeDeliveredRow{}, after(st.now, -arg.Keep)
		for _, r := range seen {
			if r.Outcome == "delivered" && r.SettledAt.Before(cutoff) {
				st.settlements.remove(st, r.MessageID)
				st.erase(r.MessageID)
				rows = append(rows, db.PurgeDeliveredRow{ID: r.MessageID, Removed: true})
			}
		}
		if len(seen) > 0 {
			rows = append(rows, db.PurgeDeliveredRow{ID: seen[len(seen)-1].MessageID})
		}
		return rows
	})
}

// PurgeUndelivered implements db.Purger.
func (s *Store) PurgeUndelivered(ctx context.Context, arg db.PurgeUndeliveredParams) ([]int64, error) {
	return run(ctx, s, "PurgeUndelivered", arg, func(st *statement) []int64 {
		cutoff, ids := after(st.now, -arg.Keep), []int64{}
		old := func(r tables.Settlement) bool {
			return r.Outcome == arg.Outcome && r.Outcome != "delivered" && r.SettledAt.Before(cutoff)
		}
		for _, r := range st.settled(bySettled, arg.MaxRows, old) {
			st.settlements.remove(st, r.MessageID)
			st.unblock(queueRow(st.messages.rows[r.MessageID]))
			st.erase(r.MessageID)
			ids = append(ids, r.MessageID)
		}
		return ids
	})
}

// settled returns the first settlements that are wanted, in the given order.
func (st *statement) settled(order func(a, b tables.Settlement) int, limit int32, wanted func(tables.Settlement) bool) []tables.Settlement {
	rows := slices.SortedFunc(where(maps.Values(st.settlements.rows), wanted), order)
	return first(rows, limit)
}

func byID(a, b tables.Settlement) int { return cmp.Compare(a.MessageID, b.MessageID) }

func bySettled(a, b tables.Settlement) int {
	return cmp.Or(a.SettledAt.Compare(b.SettledAt), byID(a, b))
}

// ExpireUnleased implements db.Purger.
func (s *Store) ExpireUnleased(ctx context.Context, arg db.ExpireUnleasedParams) ([]db.ExpireUnleasedRow, error) {
	return run(ctx, s, "ExpireUnleased", arg, func(st *statement) []db.ExpireUnleasedRow {
		rows, seen := []db.ExpireUnleasedRow{}, st.openAbove(arg.AfterID, arg.Examine)
		for _, q := range seen {
			if q.Epoch == 0 && q.State == tables.Pending && !q.ExpiresAt.After(after(st.now, -arg.Grace)) {
				st.settle(q, tables.Settlement{Outcome: "expired", Reason: "never leased within its age"})
				rows = append(rows, db.ExpireUnleasedRow{ID: q.MessageID, Expired: true})
			}
		}
		if len(seen) > 0 {
			rows = append(rows, db.ExpireUnleasedRow{ID: seen[len(seen)-1].MessageID})
		}
		return rows
	})
}

// PurgeWorkers implements db.Purger.
func (s *Store) PurgeWorkers(ctx context.Context, arg db.PurgeWorkersParams) ([]int64, error) {
	return run(ctx, s, "PurgeWorkers", arg, func(st *statement) []int64 {
		cutoff := after(st.now, -arg.Keep)
		ids := []int64{}
		for _, w := range st.workers.sorted(func(a, b tables.Worker) int { return cmp.Compare(a.ID, b.ID) }) {
			if w.SeenAt.Before(cutoff) && len(ids) < int(arg.MaxRows) {
				st.workers.remove(st, w.ID)
				ids = append(ids, w.ID)
			}
		}
		return ids
	})
}
