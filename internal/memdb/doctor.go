package memdb

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// AuditMessages implements db.Doctor. Nobody writes these tables by hand, so there is no problem to find.
func (s *Store) AuditMessages(ctx context.Context, arg db.AuditMessagesParams) ([]db.AuditMessagesRow, error) {
	return run(ctx, s, "AuditMessages", arg, func(st *statement) []db.AuditMessagesRow {
		closing := db.AuditMessagesRow{}
		for _, id := range slices.Sorted(maps.Keys(st.messages.rows)) {
			closing.Highest = id
			if id > arg.AfterID && closing.Messages < int64(arg.Examine) {
				closing.ID = id
				closing.Messages++
			}
		}
		if closing.Messages < int64(arg.Examine) {
			closing.ID = 0
		}
		return []db.AuditMessagesRow{closing}
	})
}

// ListHeads implements db.Doctor.
func (s *Store) ListHeads(ctx context.Context, arg db.ListHeadsParams) ([]db.ListHeadsRow, error) {
	return run(ctx, s, "ListHeads", arg, func(st *statement) []db.ListHeadsRow {
		keys := map[orderKey][]int64{}
		for _, q := range st.openAbove(0, int32(len(st.queue.rows))) {
			if q.OrderKey != "" {
				keys[keyOf(q)] = append(keys[keyOf(q)], q.MessageID)
			}
		}
		rows, seen, last := []db.ListHeadsRow{}, int32(0), orderKey{}
		start := orderKey{arg.AfterConsumer, arg.AfterTarget, arg.AfterTenant, arg.AfterOrderKey}
		for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
			if compareKeys(key, start) <= 0 || seen == arg.Examine {
				continue
			}
			seen, last = seen+1, key
			q, lease := st.queue.rows[keys[key][0]], st.orderLeases.rows[key]
			atWork := q.Attempt == 1 && q.LeasedUntil.After(st.now)
			if q.BornAt.After(after(st.now, -arg.Age)) || atWork || len(keys[key]) == 1 && !lease.Blocked {
				continue
			}
			row := db.ListHeadsRow{
				Consumer: q.Consumer, Target: q.Target, Tenant: q.Tenant, OrderKey: q.OrderKey, ID: q.MessageID, Kind: q.Kind, Attempt: q.Attempt,
				Parked: q.State == tables.Parked, Paused: st.pauseMode(laneOf(q)) >= 0,
				LeasedUntil: q.LeasedUntil, DueAt: q.DueAt, BornAt: q.BornAt, Now: st.now,
			}
			if lease.Blocked {
				row.Blocker = lease.MessageID
			}
			rows = append(rows, row)
		}
		if seen < arg.Examine {
			last = orderKey{}
		}
		return append(rows, db.ListHeadsRow{
			Consumer: last.consumer, Target: last.target, Tenant: last.tenant, OrderKey: last.key, LeasedUntil: st.now, DueAt: st.now, BornAt: st.now, Now: st.now,
		})
	})
}

func compareKeys(a, b orderKey) int {
	return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.target, b.target), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.key, b.key))
}

// ReadHorizon implements db.Doctor. Who holds the stream back is a transaction without a name.
func (s *Store) ReadHorizon(ctx context.Context) ([]db.ReadHorizonRow, error) {
	return run(ctx, s, "ReadHorizon", nil, func(st *statement) []db.ReadHorizonRow {
		row := db.ReadHorizonRow{Newest: st.purged.Position}
		all, readable := st.events.sorted(byTransaction), st.stream()
		if len(all) > 0 {
			row.Newest = all[len(all)-1].Position
		}
		if len(all) > len(readable) {
			row.Unread = st.now.Sub(all[len(readable)].RecordedAt).Microseconds()
		}
		return []db.ReadHorizonRow{row}
	})
}

// ListReaders implements db.Doctor.
func (s *Store) ListReaders(ctx context.Context, arg db.ListReadersParams) ([]db.ListReadersRow, error) {
	return run(ctx, s, "ListReaders", arg, func(st *statement) []db.ListReadersRow {
		rows := []db.ListReadersRow{}
		for _, r := range st.readers.sorted(func(a, b tables.Reader) int { return cmp.Compare(a.Name, b.Name) }) {
			if len(rows) == int(arg.MaxRows) || r.Name <= arg.AfterName {
				continue
			}
			row := db.ListReadersRow{Name: r.Name, Position: r.Position, SavedAt: r.SavedAt, Standing: st.standing(db.ReadEventsParams{
				Incarnation: r.Incarnation, AfterTransactionID: r.TransactionID, AfterPosition: r.Position, AfterDigest: r.Digest,
			})}
			place := tables.Event{TransactionID: r.TransactionID, Position: r.Position}
			left := slices.DeleteFunc(st.stream(), func(e tables.Event) bool { return byTransaction(e, place) <= 0 })
			if row.Standing == db.StandingGood && len(left) > 0 {
				row.Behind = st.now.Sub(left[0].RecordedAt).Microseconds()
			}
			rows = append(rows, row)
		}
		return rows
	})
}

// ListLapsedClaims implements db.Doctor.
func (s *Store) ListLapsedClaims(ctx context.Context, arg db.ListLapsedClaimsParams) ([]db.ListLapsedClaimsRow, error) {
	return run(ctx, s, "ListLapsedClaims", arg, func(st *statement) []db.ListLapsedClaimsRow {
		rows := []db.ListLapsedClaimsRow{}
		for _, c := range st.claims.sorted(func(a, b tables.Claim) int { return a.HeldUntil.Compare(b.HeldUntil) }) {
			if len(rows) < int(arg.MaxRows) && c.State == db.ClaimHeld && !c.HeldUntil.After(after(st.now, -arg.Age)) {
				rows = append(rows, db.ListLapsedClaimsRow{
					Tenant: c.Tenant, Scope: c.Scope, Key: c.Key, Epoch: c.Epoch, HeldUntil: c.HeldUntil, Now: st.now,
				})
			}
		}
		return rows
	})
}

// ListStuckBatches implements db.Doctor.
func (s *Store) ListStuckBatches(ctx context.Context, arg db.ListStuckBatchesParams) ([]db.ListStuckBatchesRow, error) {
	return run(ctx, s, "ListStuckBatches", arg, func(st *statement) []db.ListStuckBatchesRow {
		open := slices.DeleteFunc(st.batches.sorted(func(a, b tables.Batch) int { return cmp.Compare(a.ID, b.ID) }),
			func(b tables.Batch) bool { return !b.CompletedAt.Equal(tables.Forever) })
		rows := []db.ListStuckBatchesRow{}
		for _, b := range first(open, arg.Examine) {
			sealed := !b.SealedAt.Equal(tables.Forever)
			if sealed && st.extents[b.ID].open > 0 || !sealed && b.CreatedAt.After(after(st.now, -arg.Age)) {
				continue
			}
			rows = append(rows, db.ListStuckBatchesRow{
				ID: b.ID, Tenant: b.Tenant, Consumer: b.Consumer, Key: b.Key, CreatedAt: b.CreatedAt, Broken: sealed, Now: st.now,
			})
		}
		return rows
	})
}

// ReadSurroundings implements db.Doctor.
func (s *Store) ReadSurroundings(ctx context.Context, arg db.ReadSurroundingsParams) ([]db.ReadSurroundingsRow, error) {
	return run(ctx, s, "ReadSurroundings", arg, func(*statement) []db.ReadSurroundingsRow {
		return []db.ReadSurroundingsRow{
			{Section: "setting", Name: "role", Value: "memory"}, {Section: "setting", Name: "fsync", Value: "off"},
			{Section: "index", Name: "queue_due", Value: "valid"}, {Section: "table", Name: "queue"},
			{Section: "session", Name: "sees all", Value: "true"}, {Section: "session", Name: "prepared transaction", Value: "0"},
		}
	})
}
