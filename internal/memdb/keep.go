package memdb

import (
	"bytes"
	"context"
	"iter"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Renew implements db.Leaser.
func (s *Store) Renew(ctx context.Context, arg db.RenewParams) ([]db.RenewRow, error) {
	return run(ctx, s, "Renew", arg, func(st *statement) []db.RenewRow {
		until, latest, rows := after(st.now, arg.Lease), after(st.now, arg.LongestLease), []db.RenewRow{}
		for _, q := range st.holding(arg.Ids, arg.Tokens) {
			if !q.LeasedUntil.After(st.now) {
				continue
			}
			q.LeasedUntil = earlier(later(q.LeasedUntil, until), latest)
			st.queue.put(st, q)
			if q.OrderKey != "" {
				o, ok := st.orderLease(q)
				if !ok || o.Blocked {
					continue
				}
				o.LeasedUntil = earlier(later(o.LeasedUntil, until), latest)
				st.orderLeases.put(st, o)
			}
			rows = append(rows, db.RenewRow{ID: q.MessageID, LeasedUntil: q.LeasedUntil, PauseMode: st.pauseMode(laneOf(q))})
		}
		return rows
	})
}

// Release implements db.Leaser.
func (s *Store) Release(ctx context.Context, arg db.ReleaseParams) ([]int64, error) {
	return run(ctx, s, "Release", arg, func(st *statement) []int64 {
		ids := []int64{}
		if !st.parallel(len(arg.Ids), len(arg.Unsures)) {
			return nil
		}
		for i, q := range st.holding(arg.Ids, arg.Tokens) {
			q.Attempt--
			q.Unsure = q.Unsure || arg.Unsures[i]
			st.queue.put(st, freed(q))
			st.endOrder(q, false)
			ids = append(ids, q.MessageID)
		}
		return ids
	})
}

// holding yields the leased messages whose token is the one given beside their id, with the position of the id. Nobody's token opens nothing.
func (st *statement) holding(ids []int64, tokens []byte) iter.Seq2[int, tables.Queue] {
	return func(yield func(int, tables.Queue) bool) {
		if len(tokens) != db.TokenSize*len(ids) {
			return
		}
		for i, id := range ids {
			if q, ok := st.queue.rows[id]; ok && held(q) && bytes.Equal(q.Token, tokens[db.TokenSize*i:][:db.TokenSize]) && !yield(i, q) {
				return
			}
		}
	}
}
