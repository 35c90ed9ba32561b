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
			if r.Outcome == "delivered" && r.SettledAt.Before(cutoff) && inScope(arg.AllTenants, arg.Scope, st.messages.rows[r.MessageID].Tenant) {
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
func (s *Store) PurgeUndelivered(ctx context.Context, arg db.PurgeUndeliveredParams) ([]db.PurgeUndeliveredRow, error) {
	return run(ctx, s, "PurgeUndelivered", arg, func(st *statement) []db.PurgeUndeliveredRow {
		cutoff, place := after(st.now, -arg.Keep), tables.Settlement{SettledAt: arg.AfterAt, MessageID: arg.AfterID}
		seen := st.settled(bySettled, arg.MaxRows, func(r tables.Settlement) bool {
			return r.Outcome == arg.Outcome && r.Outcome != "delivered" && r.SettledAt.Before(cutoff) && bySettled(r, place) > 0
		})
		rows := []db.PurgeUndeliveredRow{}
		for _, r := range seen {
			if !inScope(arg.AllTenants, arg.Scope, st.messages.rows[r.MessageID].Tenant) {
				continue
			}
			st.settlements.remove(st, r.MessageID)
			st.unblock(queueRow(st.messages.rows[r.MessageID]))
			st.erase(r.MessageID)
			rows = append(rows, db.PurgeUndeliveredRow{ID: r.MessageID, SettledAt: db.Never, Removed: true})
		}
		if len(seen) > 0 {
			last := seen[len(seen)-1]
			rows = append(rows, db.PurgeUndeliveredRow{ID: last.MessageID, SettledAt: last.SettledAt})
		}
		return rows
	})
}

// PurgeAudit implements db.Purger.
func (s *Store) PurgeAudit(ctx context.Context, arg db.PurgeAuditParams) ([]db.PurgeAuditRow, error) {
	return run(ctx, s, "PurgeAudit", arg, func(st *statement) []db.PurgeAuditRow {
		rows, cutoff := []db.PurgeAuditRow{}, after(st.now, -arg.Keep)
		above := where(maps.Values(st.audits.rows), func(a tables.Audit) bool { return a.ID > arg.AfterID })
		seen := first(slices.SortedFunc(above, func(a, b tables.Audit) int { return cmp.Compare(a.ID, b.ID) }), arg.MaxRows)
		for _, a := range seen {
			if a.At.Before(cutoff) && inScope(arg.AllTenants, arg.Scope, a.Tenant) {
				st.audits.remove(st, a.ID)
				rows = append(rows, db.PurgeAuditRow{ID: a.ID, Removed: true})
			}
		}
		if len(seen) > 0 {
			rows = append(rows, db.PurgeAuditRow{ID: seen[len(seen)-1].ID})
		}
		return rows
	})
}

// CountOld implements db.Purger.
func (s *Store) CountOld(ctx context.Context, arg db.CountOldParams) ([]db.CountOldRow, error) {
	return run(ctx, s, "CountOld", arg, func(st *statement) []db.CountOldRow {
		keep := map[string]int64{"delivered": arg.KeepDelivered, "dead": arg.KeepDead, "cancelled": arg.KeepCancelled, "expired": arg.KeepExpired}
		seen := st.settled(byID, arg.MaxRows, func(r tables.Settlement) bool { return r.MessageID > arg.AfterID })
		old := map[string]int64{}
		for _, r := range seen {
			period := keep[r.Outcome]
			if period > 0 && r.SettledAt.Before(after(st.now, -period)) && inScope(arg.AllTenants, arg.Scope, st.messages.rows[r.MessageID].Tenant) {
				old[r.Outcome]++
			}
		}
		rows := []db.CountOldRow{}
		for outcome, n := range old {
			rows = append(rows, db.CountOldRow{Outcome: outcome, Old: n})
		}
		if len(seen) > 0 {
			rows = append(rows, db.CountOldRow{Last: seen[len(seen)-1].MessageID})
		}
		return rows
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
			if st.overdue(q, arg.Grace) && inScope(arg.AllTenants, arg.Scope, q.Tenant) {
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

// overdue says whether nobody ever leased a message within its age and grace more.
func (st *statement) overdue(q tables.Queue, grace int64) bool {
	return q.Epoch == 0 && q.State == tables.Pending && !q.ExpiresAt.After(after(st.now, -grace))
}

// CountOverdue implements db.Purger.
func (s *Store) CountOverdue(ctx context.Context, arg db.CountOverdueParams) ([]db.CountOverdueRow, error) {
	return run(ctx, s, "CountOverdue", arg, func(st *statement) []db.CountOverdueRow {
		var row db.CountOverdueRow
		for _, q := range st.openAbove(arg.AfterID, arg.Examine) {
			if row.Last = q.MessageID; st.overdue(q, arg.Grace) && inScope(arg.AllTenants, arg.Scope, q.Tenant) {
				row.Overdue++
			}
		}
		return []db.CountOverdueRow{row}
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
