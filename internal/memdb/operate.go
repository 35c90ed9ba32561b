package memdb

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// highestAttempt is where attempts saturate, below the table's bound, so that one more lease stays possible.
const highestAttempt = 9999

// CancelOpen implements db.Operator.
func (s *Store) CancelOpen(ctx context.Context, arg db.CancelOpenParams) ([]int64, error) {
	return run(ctx, s, "CancelOpen", arg, func(st *statement) []int64 {
		ids := []int64{}
		for _, q := range st.openIn(arg.Ids, arg.AllTenants, arg.Scope) {
			detail := "was pending"
			if q.State == tables.Parked {
				detail = "was parked"
			}
			st.settle(q, tables.Settlement{Outcome: "cancelled", Reason: arg.Reason})
			st.endOrder(q, false)
			st.audit("cancel", q.MessageID, q.Tenant, arg.Actor, arg.Reason, detail)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// ReplayDead implements db.Operator.
func (s *Store) ReplayDead(ctx context.Context, arg db.ReplayDeadParams) ([]int64, error) {
	return run(ctx, s, "ReplayDead", arg, func(st *statement) []int64 {
		ids := []int64{}
		for _, id := range arg.Ids {
			dead, ok := st.settlements.rows[id]
			m := st.messages.rows[id]
			if !ok || dead.Outcome != "dead" || !inScope(arg.AllTenants, arg.Scope, m.Tenant) {
				continue
			}
			q, detail := queueRow(m), "; attempts reset"
			if !arg.Reset {
				q.Attempt, detail = min(dead.Attempt, highestAttempt), "; attempts kept"
			}
			q.Epoch, q.Replays, q.ReplayedAt = dead.Epoch, dead.Replays+1, st.now
			q.Unsure = dead.Epoch > 0 && (dead.Cause == "age" || dead.Cause == "exhausted")
			st.settlements.remove(st, id)
			st.queue.put(st, st.restarted(q, m.MaxAge))
			st.reopened(id)
			st.unblock(q)
			st.audit("replay", id, m.Tenant, arg.Actor, arg.Reason, "was dead, "+dead.Cause+detail)
			ids = append(ids, id)
		}
		return ids
	})
}

// restarted is the row at once due, its age starting anew, with one more lease possible.
func (st *statement) restarted(q tables.Queue, maxAge int64) tables.Queue {
	q.State, q.DueAt, q.BornAt, q.ExpiresAt = tables.Pending, st.now, st.now, expires(st.now, maxAge)
	q.AttemptLimit = q.Attempt + 1
	return q
}

// ResolveSettled implements db.Operator.
func (s *Store) ResolveSettled(ctx context.Context, arg db.ResolveSettledParams) ([]int64, error) {
	return run(ctx, s, "ResolveSettled", arg, func(st *statement) []int64 {
		outcome := tables.Settlement{Outcome: arg.Outcome, Reason: arg.Reason}
		if arg.Outcome == "dead" {
			outcome.Cause = "permanent"
		}
		ids := []int64{}
		for _, q := range st.parkedIn(arg.Ids, arg.AllTenants, arg.Scope) {
			st.settle(q, outcome)
			if arg.BlockOnDead && arg.Outcome == "dead" {
				st.takeOrder(q, db.Never, arg.LongestLease)
			}
			st.audit("resolve", q.MessageID, q.Tenant, arg.Actor, arg.Reason, "was parked; "+arg.Outcome)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// ResolveRetry implements db.Operator.
func (s *Store) ResolveRetry(ctx context.Context, arg db.ResolveRetryParams) ([]int64, error) {
	return run(ctx, s, "ResolveRetry", arg, func(st *statement) []int64 {
		ids := []int64{}
		for _, q := range st.parkedIn(arg.Ids, arg.AllTenants, arg.Scope) {
			q.Attempt = min(q.Attempt, highestAttempt)
			st.queue.put(st, st.restarted(q, st.messages.rows[q.MessageID].MaxAge))
			st.audit("resolve", q.MessageID, q.Tenant, arg.Actor, arg.Reason, "was parked; retry")
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// openIn returns those of the messages that are open and in scope.
func (st *statement) openIn(ids []int64, allTenants bool, scope []string) []tables.Queue {
	var rows []tables.Queue
	for _, id := range ids {
		if q, ok := st.queue.rows[id]; ok && inScope(allTenants, scope, q.Tenant) {
			rows = append(rows, q)
		}
	}
	return rows
}

func (st *statement) parkedIn(ids []int64, allTenants bool, scope []string) []tables.Queue {
	return slices.DeleteFunc(st.openIn(ids, allTenants, scope), func(q tables.Queue) bool { return q.State != tables.Parked })
}

// PauseLane implements db.Operator.
func (s *Store) PauseLane(ctx context.Context, arg db.PauseLaneParams) ([]time.Time, error) {
	return run(ctx, s, "PauseLane", arg, func(st *statement) []time.Time {
		st.audit("pause", 0, arg.Tenant, arg.Actor, arg.Reason, arg.Consumer+" "+arg.Target+" "+arg.Kind)
		st.pauses.put(st, tables.Pause{
			PausedAt: st.now, Mode: arg.Mode, Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, Tenant: arg.Tenant,
			Actor: arg.Actor, Reason: arg.Reason,
		})
		return []time.Time{st.now}
	})
}

// ResumeLane implements db.Operator.
func (s *Store) ResumeLane(ctx context.Context, arg db.ResumeLaneParams) ([]time.Time, error) {
	return run(ctx, s, "ResumeLane", arg, func(st *statement) []time.Time {
		lane := laneName{arg.Consumer, arg.Target, arg.Kind, arg.Tenant}
		pause, ok := st.pauses.rows[lane]
		if !ok {
			return []time.Time{}
		}
		st.pauses.remove(st, lane)
		st.audit("resume", 0, arg.Tenant, arg.Actor, arg.Reason, arg.Consumer+" "+arg.Target+" "+arg.Kind)
		return []time.Time{pause.PausedAt}
	})
}

// ReleaseWorker implements db.Operator.
func (s *Store) ReleaseWorker(ctx context.Context, arg db.ReleaseWorkerParams) ([]db.ReleaseWorkerRow, error) {
	return run(ctx, s, "ReleaseWorker", arg, func(st *statement) []db.ReleaseWorkerRow {
		rows, seen := []db.ReleaseWorkerRow{}, st.openAbove(arg.AfterID, arg.Examine)
		for _, q := range seen {
			worker, known := st.workers.rows[q.LeasedBy]
			if !known || worker.Name != arg.Worker || !held(q) || !inScope(arg.AllTenants, arg.Scope, q.Tenant) {
				continue
			}
			q.Unsure = true
			st.queue.put(st, freed(q))
			st.endOrder(q, false)
			st.audit("release", q.MessageID, q.Tenant, arg.Actor, arg.Reason, arg.Worker)
			rows = append(rows, db.ReleaseWorkerRow{ID: q.MessageID, Released: true})
		}
		if len(seen) > 0 {
			rows = append(rows, db.ReleaseWorkerRow{ID: seen[len(seen)-1].MessageID})
		}
		return rows
	})
}

// UnblockKey implements db.Operator.
func (s *Store) UnblockKey(ctx context.Context, arg db.UnblockKeyParams) ([]int64, error) {
	return run(ctx, s, "UnblockKey", arg, func(st *statement) []int64 {
		key := orderKey{arg.Consumer, arg.Target, arg.Tenant, arg.OrderKey}
		o := st.orderLeases.rows[key]
		if !o.Blocked {
			return []int64{}
		}
		st.orderLeases.remove(st, key)
		st.audit("unblock", o.MessageID, arg.Tenant, arg.Actor, arg.Reason, arg.OrderKey)
		return []int64{o.MessageID}
	})
}
