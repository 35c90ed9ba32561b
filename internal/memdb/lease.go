package memdb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// A pick is a row that LeaseDue took out of a lane.
type pick struct {
	tables.Queue
	laneNo      int32
	spent, aged bool
}

// LeaseDue implements db.Leaser.
func (s *Store) LeaseDue(ctx context.Context, arg db.LeaseDueParams) ([]db.LeaseDueRow, error) {
	return run(ctx, s, "LeaseDue", arg, func(st *statement) []db.LeaseDueRow {
		if !st.parallel(len(arg.Kinds), len(arg.Tenants), len(arg.Priorities), len(arg.AfterDues), len(arg.AfterIds), len(arg.AttemptLimits),
			len(arg.MaxAges)) {
			return nil
		}
		picks, bounds := st.pickDue(arg)
		rows, until := []db.LeaseDueRow{}, after(st.now, arg.Lease)
		for _, p := range picks {
			dies := p.spent || p.aged
			switch {
			// A death that blocks the key takes it as a lease does: taken from a message that runs, it would let another run beside that
			// once the key is unblocked.
			case dies && arg.BlockOnDead && !st.takeOrder(p.Queue, db.Never, arg.LongestLease),
				!dies && !st.takeOrder(p.Queue, until, arg.LongestLease):
				rows = append(rows, db.LeaseDueRow{LaneNo: p.laneNo, Fate: db.FateRefused, DueAt: p.DueAt, ID: p.MessageID})
			case dies:
				rows = append(rows, st.bury(p))
			default:
				rows = append(rows, leaseDueRow(p, db.FateGranted, st.grant(p.Queue, until, arg.Token, arg.Worker), st.messages.rows[p.MessageID]))
			}
		}
		slices.SortStableFunc(rows, func(a, b db.LeaseDueRow) int {
			return cmp.Or(cmp.Compare(a.LaneNo, b.LaneNo), a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
		})
		rows = append(rows, bounds...)
		return append(rows, db.LeaseDueRow{Fate: db.FateClosing, DueAt: st.now})
	})
}

// pickDue chooses the rows of a lease, and says which lanes were cut by the bound on what is examined.
func (st *statement) pickDue(arg db.LeaseDueParams) (picks []pick, bounds []db.LeaseDueRow) {
	lanes, heads := st.lanes(), st.heads()
	picked := map[int32]int32{} // by lane
	for i := range arg.Kinds {
		laneNo := int32(i + 1)
		entries := st.entries(lanes, arg, i)
		if len(entries) >= int(arg.Examine) {
			entries = entries[:arg.Examine]
			last := entries[len(entries)-1]
			bounds = append(bounds, db.LeaseDueRow{LaneNo: laneNo, Fate: db.FateBound, DueAt: last.DueAt, ID: last.MessageID})
		}
		for _, q := range entries {
			if picked[laneNo] == arg.Quota || len(picks) == int(arg.MaxRows) {
				break
			}
			if !st.over(q.LeasedUntil, arg.LongestLease) || q.OrderKey != "" && heads[keyOf(q)] != q.MessageID {
				continue
			}
			picked[laneNo]++
			picks = append(picks, pick{
				Queue:  q,
				laneNo: laneNo,
				spent:  q.Attempt >= max(arg.AttemptLimits[i], q.AttemptLimit),
				aged:   !expiry(q, arg.MaxAges[i]).After(st.now),
			})
		}
	}
	cutIn := int32(math.MaxInt32) // the lane in which max_rows cut the pass
	if len(picks) == int(arg.MaxRows) {
		cutIn = 0
		if len(picks) > 0 {
			cutIn = picks[len(picks)-1].laneNo
		}
	}
	bounds = slices.DeleteFunc(bounds, func(b db.LeaseDueRow) bool { return picked[b.LaneNo] == arg.Quota || b.LaneNo >= cutIn })
	return picks, bounds
}

// entries returns what stands in one lane of the call above its watermark, nothing when it is paused or out of scope.
func (st *statement) entries(lanes []lane, arg db.LeaseDueParams, i int) []tables.Queue {
	name := laneName{arg.Consumer, arg.Target, arg.Kinds[i], arg.Tenants[i]}
	at, found := slices.BinarySearchFunc(lanes, lane{laneName: name, priority: int32(arg.Priorities[i])}, compareLanes)
	if !found || !inScope(arg.AllTenants, arg.Scope, name.tenant) || st.pauseMode(name) >= 0 {
		return nil
	}
	return st.entriesAfter(lanes[at], arg.AfterDues[i], arg.AfterIds[i])
}

// heads gives the first open message of each order key.
func (st *statement) heads() map[orderKey]int64 {
	heads := map[orderKey]int64{}
	for _, q := range st.queue.rows {
		if head, ok := heads[keyOf(q)]; q.OrderKey != "" && (!ok || q.MessageID < head) {
			heads[keyOf(q)] = q.MessageID
		}
	}
	return heads
}

// takeOrder gives an ordered message its order key until the instant, db.Never for a dead one that blocks it, unless another has or blocks it.
func (st *statement) takeOrder(q tables.Queue, until time.Time, longestLease int64) bool {
	if q.OrderKey == "" {
		return true
	}
	if o, ok := st.orderLeases.rows[keyOf(q)]; ok && (o.Blocked || !st.over(o.LeasedUntil, longestLease)) {
		return false
	}
	st.orderLeases.put(st, leaseOf(q, until, until.Equal(db.Never)))
	return true
}

func (st *statement) grant(q tables.Queue, until time.Time, token []byte, worker int64) tables.Queue {
	q.Attempt++
	q.Epoch++
	// A token that is still there belongs to a lease that was lost: nobody knows how far its handler came.
	q.Unsure = q.Unsure || held(q)
	q.Token, q.LeasedBy, q.LeasedUntil = exact(token), worker, until
	st.queue.put(st, q)
	return q
}

// bury settles as dead what may not run again. A head that does not block its order key lets it go.
func (st *statement) bury(p pick) db.LeaseDueRow {
	cause, reason := "exhausted", "leases lost until attempts ran out"
	switch {
	case !p.spent:
		cause, reason = "age", "too old"
	case p.LeasedUntil.Equal(db.Never):
		cause, reason = "attempts", "attempts spent"
	}
	if strings.Trim(p.LastError, " ") != "" {
		reason += "; last error: " + p.LastError
	}
	st.endOrder(p.Queue, false)
	st.settle(p.Queue, tables.Settlement{Outcome: "dead", Cause: cause, Reason: reason, SettledBy: p.LeasedBy})
	buried := p.Queue
	buried.Unsure = false
	row := leaseDueRow(p, db.FateBuried, buried, st.messages.rows[p.MessageID])
	row.Cause, row.Reason = cause, reason
	return row
}

func leaseDueRow(p pick, fate int32, q tables.Queue, m tables.Message) db.LeaseDueRow {
	return db.LeaseDueRow{
		LaneNo: p.laneNo, Fate: fate, DueAt: q.DueAt, ID: q.MessageID,
		Tenant: m.Tenant, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey, Priority: int32(m.Priority),
		SourcePosition: m.SourcePosition, SourceEventID: m.SourceEventID, CreatedAt: m.CreatedAt,
		Metadata: m.Metadata, Payload: exact(m.Payload),
		Attempt: q.Attempt, Epoch: q.Epoch, Replays: q.Replays, Unsure: q.Unsure, LeasedUntil: q.LeasedUntil,
	}
}

// LeaseSuccessors implements db.Leaser.
func (s *Store) LeaseSuccessors(ctx context.Context, arg db.LeaseSuccessorsParams) ([]db.LeaseSuccessorsRow, error) {
	return run(ctx, s, "LeaseSuccessors", arg, func(st *statement) []db.LeaseSuccessorsRow {
		if !st.parallel(len(arg.Tenants), len(arg.OrderKeys)) || !st.parallel(len(arg.Kinds), len(arg.AttemptLimits), len(arg.MaxAges)) {
			return nil
		}
		heads, until := st.heads(), after(st.now, arg.Lease)
		rows, picked := []db.LeaseSuccessorsRow{}, int32(0)
		for i, tenant := range arg.Tenants {
			head, ok := heads[orderKey{arg.Consumer, arg.Target, tenant, arg.OrderKeys[i]}]
			if q := st.queue.rows[head]; ok && picked < arg.MaxRows && st.mayFollow(q, arg) {
				picked++
				if st.takeOrder(q, until, arg.LongestLease) {
					rows = append(rows, successorRow(st.grant(q, until, arg.Token, arg.Worker), st.messages.rows[head]))
				}
			}
		}
		return rows
	})
}

// mayFollow has the guards of LeaseDue for one head.
func (st *statement) mayFollow(q tables.Queue, arg db.LeaseSuccessorsParams) bool {
	kind := slices.Index(arg.Kinds, q.Kind)
	return kind >= 0 &&
		q.State == tables.Pending &&
		!q.DueAt.After(st.now) &&
		st.over(q.LeasedUntil, arg.LongestLease) &&
		inScope(arg.AllTenants, arg.Scope, q.Tenant) &&
		q.Attempt < max(arg.AttemptLimits[kind], q.AttemptLimit) &&
		expiry(q, arg.MaxAges[kind]).After(st.now) &&
		st.pauseMode(laneOf(q)) < 0
}

func successorRow(q tables.Queue, m tables.Message) db.LeaseSuccessorsRow {
	return db.LeaseSuccessorsRow{
		DueAt: q.DueAt, ID: q.MessageID,
		Tenant: m.Tenant, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey, Priority: int32(m.Priority),
		SourcePosition: m.SourcePosition, SourceEventID: m.SourceEventID, CreatedAt: m.CreatedAt,
		Metadata: m.Metadata, Payload: exact(m.Payload),
		Attempt: q.Attempt, Epoch: q.Epoch, Replays: q.Replays, Unsure: q.Unsure, LeasedUntil: q.LeasedUntil,
	}
}
