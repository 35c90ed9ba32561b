package memdb

import (
	"context"
	"iter"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// SettleDelivered implements db.Settler.
func (s *Store) SettleDelivered(ctx context.Context, arg db.SettleDeliveredParams) ([]int64, error) {
	return run(ctx, s, "SettleDelivered", arg, func(st *statement) []int64 {
		ids := []int64{}
		if len(arg.Results) == 0 {
			arg.Results = make([]string, len(arg.Ids))
		}
		if !st.parallel(len(arg.Ids), len(arg.Results)) {
			return nil
		}
		fence := fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, arg.AcceptLate}
		for i, q := range st.fenced(fence) {
			st.settle(q, tables.Settlement{Outcome: "delivered", Result: arg.Results[i], SettledBy: q.LeasedBy})
			st.endOrder(q, false)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// SettleDropped implements db.Settler.
func (s *Store) SettleDropped(ctx context.Context, arg db.SettleDroppedParams) ([]int64, error) {
	return run(ctx, s, "SettleDropped", arg, func(st *statement) []int64 {
		ids := []int64{}
		fence := fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, arg.AcceptLate}
		for _, q := range st.fenced(fence) {
			st.queue.remove(st, q.MessageID)
			st.endOrder(q, false)
			st.erase(q.MessageID)
			st.ended(q.MessageID)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// SettleRetry implements db.Settler.
func (s *Store) SettleRetry(ctx context.Context, arg db.SettleRetryParams) ([]db.SettleRetryRow, error) {
	return run(ctx, s, "SettleRetry", arg, func(st *statement) []db.SettleRetryRow {
		rows := []db.SettleRetryRow{}
		if !st.parallel(len(arg.Ids), len(arg.MaxAges), len(arg.Delays), len(arg.Unsures), len(arg.LastErrors), len(arg.Reasons)) {
			return nil
		}
		fence := fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, false}
		for i, q := range st.fenced(fence) {
			aged := !expiry(q, arg.MaxAges[i]).After(st.now)
			if aged {
				st.settle(q, tables.Settlement{Outcome: "dead", Cause: "age", Reason: arg.Reasons[i], SettledBy: q.LeasedBy})
			} else {
				if arg.Unspent {
					q.Attempt--
				}
				q.DueAt = earlier(after(st.now, arg.Delays[i]), tables.Forever)
				q.Unsure, q.LastError = arg.Unsures[i], arg.LastErrors[i]
				st.queue.put(st, freed(q))
			}
			st.endOrder(q, aged && arg.BlockOnDead)
			rows = append(rows, db.SettleRetryRow{ID: q.MessageID, Attempt: q.Attempt, Aged: aged})
		}
		return rows
	})
}

// SettleDead implements db.Settler.
func (s *Store) SettleDead(ctx context.Context, arg db.SettleDeadParams) ([]int64, error) {
	return run(ctx, s, "SettleDead", arg, func(st *statement) []int64 {
		ids := []int64{}
		if !st.parallel(len(arg.Ids), len(arg.Causes), len(arg.Reasons)) {
			return nil
		}
		fence := fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, false}
		for i, q := range st.fenced(fence) {
			st.settle(q, tables.Settlement{Outcome: "dead", Cause: arg.Causes[i], Reason: arg.Reasons[i], SettledBy: q.LeasedBy})
			st.endOrder(q, arg.BlockOnDead)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// SettleParked implements db.Settler.
func (s *Store) SettleParked(ctx context.Context, arg db.SettleParkedParams) ([]int64, error) {
	return run(ctx, s, "SettleParked", arg, func(st *statement) []int64 {
		ids := []int64{}
		if !st.parallel(len(arg.Ids), len(arg.LastErrors)) {
			return nil
		}
		fence := fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, false}
		for i, q := range st.fenced(fence) {
			q.State, q.Unsure, q.LastError = tables.Parked, true, arg.LastErrors[i]
			st.queue.put(st, freed(q))
			st.endOrder(q, false)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// A fence is what a settle must match to change a row.
type fence struct {
	ids              []int64
	tokens           []byte // one after the other
	consumer, target string
	allTenants       bool
	scope            []string
	acceptLate       bool
}

// fenced yields the rows that the caller may settle, with the position of their id.
func (st *statement) fenced(f fence) iter.Seq2[int, tables.Queue] {
	return func(yield func(int, tables.Queue) bool) {
		for i, q := range st.holding(f.ids, f.tokens) {
			mine := q.Consumer == f.consumer && q.Target == f.target && inScope(f.allTenants, f.scope, q.Tenant)
			if mine && (f.acceptLate || q.LeasedUntil.After(st.now)) && !yield(i, q) {
				return
			}
		}
	}
}

// erase removes the envelope; the key is free again.
func (st *statement) erase(id int64) {
	key := identityOf(st.messages.rows[id])
	st.messages.remove(st, id)
	delete(st.keys, key)
	st.undo = append(st.undo, func() { st.keys[key] = claim{id: id} })
}

// FindFates implements db.Settler.
func (s *Store) FindFates(ctx context.Context, arg db.FindFatesParams) ([]db.FindFatesRow, error) {
	return run(ctx, s, "FindFates", arg, func(st *statement) []db.FindFatesRow {
		rows := []db.FindFatesRow{}
		for _, id := range arg.Ids {
			m, ok := st.messages.rows[id]
			if !ok || !inScope(arg.AllTenants, arg.Scope, m.Tenant) {
				continue
			}
			row := db.FindFatesRow{ID: id, State: st.state(id)}
			if settled, ok := st.settlements.rows[id]; ok {
				row.Epoch, row.Attempt, row.Cause, row.Reason = settled.Epoch, settled.Attempt, settled.Cause, settled.Reason
			} else {
				q := st.queue.rows[id]
				row.Epoch, row.Attempt, row.Reason, row.Held = q.Epoch, q.Attempt, q.LastError, held(q)
			}
			rows = append(rows, row)
		}
		return rows
	})
}
