package memdb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// ShowMessage implements db.Inspector.
func (s *Store) ShowMessage(ctx context.Context, arg db.ShowMessageParams) ([]db.ShowMessageRow, error) {
	return run(ctx, s, "ShowMessage", arg, func(st *statement) []db.ShowMessageRow {
		m, ok := st.messages.rows[arg.ID]
		if !ok || !inScope(arg.AllTenants, arg.Scope, m.Tenant) {
			return []db.ShowMessageRow{}
		}
		row := db.ShowMessageRow{
			ID: m.ID, Tenant: m.Tenant, Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey,
			Priority: int32(m.Priority), MaxAge: m.MaxAge, SourcePosition: m.SourcePosition, SourceEventID: m.SourceEventID,
			CreatedAt: m.CreatedAt, Digest: exact(m.Digest), Metadata: m.Metadata, Payload: exact(m.Payload), State: st.state(m.ID),
			SettledAt: db.Never, DueAt: db.Never, BornAt: db.Never, ExpiresAt: db.Never, LeasedUntil: db.Never,
		}
		if r, ok := st.settlements.rows[m.ID]; ok {
			row.Attempt, row.Epoch, row.Replays, row.ReplayedAt = r.Attempt, r.Epoch, r.Replays, r.ReplayedAt
			row.Cause, row.Reason, row.Result, row.SettledAt = r.Cause, r.Reason, r.Result, r.SettledAt
			row.Worker = st.workers.rows[r.SettledBy].Name
		} else {
			q := st.queue.rows[m.ID]
			row.Attempt, row.Epoch, row.Replays, row.ReplayedAt = q.Attempt, q.Epoch, q.Replays, q.ReplayedAt
			row.Reason, row.DueAt, row.BornAt, row.ExpiresAt, row.LeasedUntil = q.LastError, q.DueAt, q.BornAt, q.ExpiresAt, q.LeasedUntil
			row.AttemptLimit = q.AttemptLimit
			row.Worker = st.workers.rows[q.LeasedBy].Name
		}
		return []db.ShowMessageRow{row}
	})
}

// ListOpen implements db.Inspector.
func (s *Store) ListOpen(ctx context.Context, arg db.ListOpenParams) ([]db.ListOpenRow, error) {
	return run(ctx, s, "ListOpen", arg, func(st *statement) []db.ListOpenRow {
		rows, seen := []db.ListOpenRow{}, st.openAbove(arg.AfterID, arg.Examine)
		for _, q := range seen {
			m, state := st.messages.rows[q.MessageID], st.stateOf(q)
			if !matches(arg.State, state) || !listed(m, arg.AllTenants, arg.Scope, arg.Consumer, arg.Target, arg.Kind) {
				continue
			}
			if len(rows) == int(arg.MaxRows) {
				return rows
			}
			rows = append(rows, db.ListOpenRow{
				ID: m.ID, Tenant: m.Tenant, Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey,
				State: state, Attempt: q.Attempt, Epoch: q.Epoch, Replays: q.Replays, ReplayedAt: q.ReplayedAt, Reason: q.LastError,
				CreatedAt: m.CreatedAt, DueAt: q.DueAt, LeasedUntil: q.LeasedUntil, SettledAt: db.Never, Matched: true,
			})
		}
		if len(seen) == int(arg.Examine) && len(rows) < int(arg.MaxRows) && len(seen) > 0 {
			rows = append(rows, db.ListOpenRow{ID: seen[len(seen)-1].MessageID})
		}
		return rows
	})
}

// ListUndelivered implements db.Inspector.
func (s *Store) ListUndelivered(ctx context.Context, arg db.ListUndeliveredParams) ([]db.ListUndeliveredRow, error) {
	return run(ctx, s, "ListUndelivered", arg, func(st *statement) []db.ListUndeliveredRow {
		before := tables.Settlement{SettledAt: arg.BeforeAt, MessageID: arg.BeforeID}
		seen := st.settled(newestSettled, arg.Examine, func(r tables.Settlement) bool {
			return r.Outcome == arg.Outcome && r.Outcome != "delivered" && bySettled(r, before) < 0
		})
		rows := []db.ListUndeliveredRow{}
		for _, r := range seen {
			m := st.messages.rows[r.MessageID]
			if !listed(m, arg.AllTenants, arg.Scope, arg.Consumer, arg.Target, arg.Kind) {
				continue
			}
			if len(rows) == int(arg.MaxRows) {
				return rows
			}
			rows = append(rows, settledRow(m, r))
		}
		if last := len(seen) - 1; last >= 0 && len(seen) == int(arg.Examine) && len(rows) < int(arg.MaxRows) {
			rows = append(rows, db.ListUndeliveredRow{ID: seen[last].MessageID, SettledAt: seen[last].SettledAt})
		}
		return rows
	})
}

// ListDelivered implements db.Inspector.
func (s *Store) ListDelivered(ctx context.Context, arg db.ListDeliveredParams) ([]db.ListDeliveredRow, error) {
	return run(ctx, s, "ListDelivered", arg, func(st *statement) []db.ListDeliveredRow {
		seen := st.settled(newestID, arg.Examine, func(r tables.Settlement) bool { return r.MessageID < arg.BeforeID })
		rows := []db.ListDeliveredRow{}
		for _, r := range seen {
			m := st.messages.rows[r.MessageID]
			if r.Outcome != "delivered" || !listed(m, arg.AllTenants, arg.Scope, arg.Consumer, arg.Target, arg.Kind) {
				continue
			}
			if len(rows) == int(arg.MaxRows) {
				return rows
			}
			row := settledRow(m, r)
			row.Cause, row.Reason = "", ""
			rows = append(rows, db.ListDeliveredRow(row))
		}
		if last := len(seen) - 1; last >= 0 && len(seen) == int(arg.Examine) && len(rows) < int(arg.MaxRows) {
			rows = append(rows, db.ListDeliveredRow{ID: seen[last].MessageID})
		}
		return rows
	})
}

func newestSettled(a, b tables.Settlement) int { return bySettled(b, a) }

func newestID(a, b tables.Settlement) int { return byID(b, a) }

// listed says whether a message passes the scope and the filters of a listing.
func listed(m tables.Message, allTenants bool, scope []string, consumer, target, kind string) bool {
	return inScope(allTenants, scope, m.Tenant) && matches(consumer, m.Consumer) && matches(target, m.Target) && matches(kind, m.Kind)
}

func settledRow(m tables.Message, r tables.Settlement) db.ListUndeliveredRow {
	return db.ListUndeliveredRow{
		ID: m.ID, Tenant: m.Tenant, Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey,
		State: r.Outcome, Attempt: r.Attempt, Epoch: r.Epoch, Replays: r.Replays, ReplayedAt: r.ReplayedAt, Cause: r.Cause, Reason: r.Reason,
		CreatedAt: m.CreatedAt, DueAt: db.Never, LeasedUntil: db.Never, SettledAt: r.SettledAt, Matched: true,
	}
}

// ListPauses implements db.Inspector.
func (s *Store) ListPauses(ctx context.Context, arg db.ListPausesParams) ([]db.ListPausesRow, error) {
	return run(ctx, s, "ListPauses", arg, func(st *statement) []db.ListPausesRow {
		rows := []db.ListPausesRow{}
		for _, p := range st.pauses.sorted(comparePauses) {
			if p.Tenant == "*" || inScope(arg.AllTenants, arg.Scope, p.Tenant) {
				rows = append(rows, db.ListPausesRow{
					Consumer: p.Consumer, Target: p.Target, Kind: p.Kind, Tenant: p.Tenant, Mode: int32(p.Mode),
					Actor: p.Actor, Reason: p.Reason, PausedAt: p.PausedAt,
				})
			}
		}
		return rows
	})
}
