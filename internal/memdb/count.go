package memdb

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// CountLanes implements db.Inspector.
func (s *Store) CountLanes(ctx context.Context, arg db.CountLanesParams) ([]db.CountLanesRow, error) {
	return run(ctx, s, "CountLanes", arg, func(st *statement) []db.CountLanesRow {
		rows := []db.CountLanesRow{}
		start := laneName{arg.AfterConsumer, arg.AfterTarget, arg.AfterKind, arg.AfterTenant}
		for _, l := range lanesAfter(st.lanes(), start, arg.AfterPriority) {
			if !inScope(arg.AllTenants, arg.Scope, l.tenant) || len(rows) == int(arg.MaxRows) {
				continue
			}
			row := db.CountLanesRow{
				Consumer: l.consumer, Target: l.target, Kind: l.kind, Tenant: l.tenant, Priority: l.priority,
				Earliest: l.entries[0].DueAt, Now: st.now,
			}
			for _, q := range first(l.entries, arg.Cap) {
				leased := q.LeasedUntil.After(st.now)
				switch {
				case q.DueAt.After(st.now):
					row.Deferred++
				case !leased:
					row.Due++
				}
				if leased {
					row.Leased++
				}
			}
			rows = append(rows, row)
		}
		return rows
	})
}

// CountParked implements db.Inspector.
func (s *Store) CountParked(ctx context.Context, arg db.CountParkedParams) ([]db.CountParkedRow, error) {
	return run(ctx, s, "CountParked", arg, func(st *statement) []db.CountParkedRow {
		parked := slices.SortedFunc(where(maps.Values(st.queue.rows), func(q tables.Queue) bool {
			return q.State == tables.Parked && inScope(arg.AllTenants, arg.Scope, q.Tenant)
		}), func(a, b tables.Queue) int {
			return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Kind, b.Kind))
		})
		rows := []db.CountParkedRow{}
		for _, q := range first(parked, arg.Cap) {
			row := db.CountParkedRow{Consumer: q.Consumer, Target: q.Target, Kind: q.Kind}
			if last := len(rows) - 1; last >= 0 && rows[last].Consumer == row.Consumer && rows[last].Target == row.Target && rows[last].Kind == row.Kind {
				rows[last].Parked++
				continue
			}
			row.Parked = 1
			rows = append(rows, row)
		}
		return rows
	})
}

// CountUndelivered implements db.Inspector.
func (s *Store) CountUndelivered(ctx context.Context, arg db.CountUndeliveredParams) ([]db.CountUndeliveredRow, error) {
	return run(ctx, s, "CountUndelivered", arg, func(st *statement) []db.CountUndeliveredRow {
		rows := []db.CountUndeliveredRow{{Outcome: "dead"}, {Outcome: "cancelled"}, {Outcome: "expired"}}
		for i := range rows {
			settled := st.settled(byID, arg.Cap, func(r tables.Settlement) bool { return r.Outcome == rows[i].Outcome })
			rows[i].Settled = int64(len(settled))
		}
		return rows
	})
}

// ReadHealth implements db.Inspector. The oldest snapshot is that of the oldest open transaction.
func (s *Store) ReadHealth(ctx context.Context, arg db.ReadHealthParams) ([]db.ReadHealthRow, error) {
	return run(ctx, s, "ReadHealth", arg, func(st *statement) []db.ReadHealthRow {
		row := db.ReadHealthRow{
			LiveRows: int64(len(st.queue.rows)), SettledEstimate: int64(len(st.settlements.rows)), Now: st.now, ServerVersion: "memory",
		}
		for tx := range st.open {
			row.OldestSnapshot = max(row.OldestSnapshot, st.now.Sub(tx.began).Microseconds())
		}
		return []db.ReadHealthRow{row}
	})
}
