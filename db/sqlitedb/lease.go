package sqlitedb

import (
	"context"
	"strings"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// DueLanes implements db.Leaser.
func (s *Store) DueLanes(ctx context.Context, arg db.DueLanesParams) ([]db.DueLanesRow, error) {
	type seed struct {
		Consumer string `json:"consumer"`
		Target   string `json:"target"`
		Kind     string `json:"kind"`
		Tenant   string `json:"tenant"`
		Priority int32  `json:"priority"`
	}
	seeds := make([]seed, len(arg.Kinds))
	for i := range seeds {
		seeds[i] = seed{arg.Consumers[i], arg.Targets[i], arg.Kinds[i], arg.AfterTenants[i], arg.AfterPriorities[i]}
	}
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.DueLanesRow, error) {
		rows, err := q.DueLanes(ctx, gen.DueLanesParams{Seeds: list(seeds), AllTenants: arg.AllTenants, MaxRows: int64(arg.MaxRows), Now: now})
		return convert(rows, err, func(row gen.DueLanesRow) db.DueLanesRow {
			return db.DueLanesRow{Seed: row.Seed, Tenant: row.Tenant, Priority: row.Priority, DueAt: instant(row.DueAt)}
		})
	})
}

// A pick is a message that LeaseDue took out of a lane.
type pick struct {
	gen.LeaseDuePickRow
	laneNo int32
}

func (p pick) dies() bool { return p.Spent || p.Aged }

// LeaseDue implements db.Leaser.
func (s *Store) LeaseDue(ctx context.Context, arg db.LeaseDueParams) ([]db.LeaseDueRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.LeaseDueRow, error) {
		picks, bounds, err := pickDue(ctx, q, now, arg)
		if err != nil {
			return nil, err
		}
		granted, doomed, err := divide(ctx, q, now, arg, picks)
		if err != nil {
			return nil, err
		}
		if err := q.LeaseGrant(ctx, gen.LeaseGrantParams{Ids: list(granted), Token: arg.Token, Worker: arg.Worker, Until: after(now, arg.Lease)}); err != nil {
			return nil, err
		}
		read, err := q.LeaseRead(ctx, gen.LeaseReadParams{Ids: list(append(granted, doomed...))})
		if err != nil {
			return nil, err
		}
		messages := make(map[int64]gen.LeaseReadRow, len(read))
		for _, m := range read {
			messages[m.MessageID] = m
		}
		verdicts, rows := []verdict{}, make([]db.LeaseDueRow, 0, len(picks)+len(bounds)+1)
		for _, p := range picks {
			m, known := messages[p.MessageID]
			switch {
			case !known:
				rows = append(rows, db.LeaseDueRow{LaneNo: p.laneNo, Fate: db.FateRefused, DueAt: instant(p.DueAt), ID: p.MessageID})
			case p.dies():
				v := p.verdict()
				verdicts = append(verdicts, v)
				row := leaseDueRow(p.laneNo, db.FateBuried, m)
				row.Unsure, row.Cause, row.Reason = false, v.Cause, v.Reason
				rows = append(rows, row)
			default:
				rows = append(rows, leaseDueRow(p.laneNo, db.FateGranted, m))
			}
		}
		if err := bury(ctx, q, now, verdicts, arg.BlockOnDead); err != nil {
			return nil, err
		}
		rows = append(rows, bounds...)
		return append(rows, db.LeaseDueRow{Fate: db.FateClosing, DueAt: instant(now)}), nil
	})
}

// A laneName is a lane as LeaseDueLanes takes it.
type laneName struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant"`
}

// pickDue chooses the messages of a lease, and says which lanes were cut by the bound on what is examined.
func pickDue(ctx context.Context, q *gen.Queries, now int64, arg db.LeaseDueParams) (picks []pick, bounds []db.LeaseDueRow, err error) {
	lanes := make([]laneName, len(arg.Kinds))
	for i := range lanes {
		lanes[i] = laneName{arg.Kinds[i], arg.Tenants[i]}
	}
	open, err := q.LeaseDueLanes(ctx, gen.LeaseDueLanesParams{
		Lanes: list(lanes), AllTenants: arg.AllTenants, Scope: list(arg.Scope), Consumer: arg.Consumer, Target: arg.Target,
	})
	if err != nil {
		return nil, nil, err
	}
	for _, i := range open {
		left := int64(arg.MaxRows) - int64(len(picks))
		if left <= 0 {
			break // this lane and those after it keep their watermarks
		}
		rows, err := q.LeaseDuePick(ctx, gen.LeaseDuePickParams{
			Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kinds[i], Tenant: arg.Tenants[i], Priority: int64(arg.Priorities[i]),
			AfterDue: micros(arg.AfterDues[i]), AfterID: arg.AfterIds[i], AttemptLimit: int64(arg.AttemptLimits[i]), MaxAge: arg.MaxAges[i],
			Examine: int64(arg.Examine), Quota: min(int64(arg.Quota), left), Now: now, Latest: after(now, arg.LongestLease),
		})
		if err != nil {
			return nil, nil, err
		}
		laneNo := int32(i + 1)
		for _, row := range rows {
			picks = append(picks, pick{row, laneNo})
		}
		if len(rows) >= int(arg.Quota) || len(picks) >= int(arg.MaxRows) {
			continue
		}
		bound, err := q.LeaseDueBound(ctx, gen.LeaseDueBoundParams{
			Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kinds[i], Tenant: arg.Tenants[i], Priority: int64(arg.Priorities[i]),
			AfterDue: micros(arg.AfterDues[i]), AfterID: arg.AfterIds[i], Examine: int64(arg.Examine), Now: now,
		})
		if err != nil {
			return nil, nil, err
		}
		for _, b := range bound {
			bounds = append(bounds, db.LeaseDueRow{LaneNo: laneNo, Fate: db.FateBound, DueAt: instant(b.DueAt), ID: b.MessageID})
		}
	}
	return picks, bounds, nil
}

// divide says which of the picks are leased and which are buried; the others are refused by their order keys. Under block_on_dead a death takes
// its order key as a lease does: one that took the key from a message that runs would let another run beside it once the key is unblocked.
func divide(ctx context.Context, q *gen.Queries, now int64, arg db.LeaseDueParams, picks []pick) (granted, doomed []int64, err error) {
	var leases, deaths []int64 // of messages with an order key
	for _, p := range picks {
		switch {
		case p.OrderKey != "" && p.dies() && arg.BlockOnDead:
			deaths = append(deaths, p.MessageID)
		case p.OrderKey != "" && !p.dies():
			leases = append(leases, p.MessageID)
		case p.dies():
			doomed = append(doomed, p.MessageID)
		default:
			granted = append(granted, p.MessageID)
		}
	}
	leases, err = takeOrder(ctx, q, now, leases, after(now, arg.Lease), false, arg.LongestLease)
	if err != nil {
		return nil, nil, err
	}
	deaths, err = takeOrder(ctx, q, now, deaths, never, true, arg.LongestLease)
	return append(granted, leases...), append(doomed, deaths...), err
}

// takeOrder takes the order keys of the messages until the instant, or blocks them, and returns those that got theirs.
func takeOrder(ctx context.Context, q *gen.Queries, now int64, ids []int64, until int64, block bool, longestLease int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return q.LeaseOrder(ctx, gen.LeaseOrderParams{Ids: list(ids), Until: until, Blocked: block, Now: now, Latest: after(now, longestLease)})
}

// bury settles as dead what may not run again. A head that does not block its key lets it go.
func bury(ctx context.Context, q *gen.Queries, now int64, verdicts []verdict, block bool) error {
	_, err := conclude(ctx, q, now, "dead", verdicts, block)
	return err
}

func (p pick) verdict() verdict {
	v := verdict{ID: p.MessageID, Cause: "exhausted", Reason: "leases lost until attempts ran out", ordered: p.OrderKey != ""}
	switch {
	case !p.Spent:
		v.Cause, v.Reason = "age", "too old"
	case p.LeasedUntil == never:
		v.Cause, v.Reason = "attempts", "attempts spent"
	}
	if strings.Trim(p.LastError, " ") != "" {
		v.Reason += "; last error: " + p.LastError
	}
	return v
}

func leaseDueRow(laneNo, fate int32, m gen.LeaseReadRow) db.LeaseDueRow {
	return db.LeaseDueRow{
		LaneNo: laneNo, Fate: fate, DueAt: instant(m.DueAt), ID: m.MessageID,
		Tenant: m.Tenant, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey, Priority: m.Priority,
		SourcePosition: m.SourcePosition, SourceEventID: m.SourceEventID, CreatedAt: instant(m.CreatedAt),
		Metadata: m.Metadata, Payload: exact(m.Payload),
		Attempt: m.Attempt, Epoch: m.Epoch, Replays: m.Replays, Unsure: m.Unsure, LeasedUntil: instant(m.LeasedUntil),
	}
}

// LeaseSuccessors implements db.Leaser.
func (s *Store) LeaseSuccessors(ctx context.Context, arg db.LeaseSuccessorsParams) ([]db.LeaseSuccessorsRow, error) {
	type key struct {
		Tenant   string `json:"tenant"`
		OrderKey string `json:"order_key"`
	}
	type kind struct {
		Kind         string `json:"kind"`
		AttemptLimit int32  `json:"attempt_limit"`
		MaxAge       int64  `json:"max_age"`
	}
	wanted, kinds := make([]key, len(arg.OrderKeys)), make([]kind, len(arg.Kinds))
	for i := range wanted {
		wanted[i] = key{arg.Tenants[i], arg.OrderKeys[i]}
	}
	for i := range kinds {
		kinds[i] = kind{arg.Kinds[i], arg.AttemptLimits[i], arg.MaxAges[i]}
	}
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.LeaseSuccessorsRow, error) {
		picked, err := q.LeaseSuccessorsPick(ctx, gen.LeaseSuccessorsPickParams{
			Wanted: list(wanted), Kinds: list(kinds), Consumer: arg.Consumer, Target: arg.Target, AllTenants: arg.AllTenants,
			Scope: list(arg.Scope), MaxRows: int64(arg.MaxRows), Now: now, Latest: after(now, arg.LongestLease),
		})
		if err != nil {
			return nil, err
		}
		until := after(now, arg.Lease)
		ids, err := takeOrder(ctx, q, now, picked, until, false, arg.LongestLease)
		if err != nil {
			return nil, err
		}
		if err := q.LeaseGrant(ctx, gen.LeaseGrantParams{Ids: list(ids), Token: arg.Token, Worker: arg.Worker, Until: until}); err != nil {
			return nil, err
		}
		rows, err := q.LeaseRead(ctx, gen.LeaseReadParams{Ids: list(ids)})
		return convert(rows, err, successorRow)
	})
}

func successorRow(m gen.LeaseReadRow) db.LeaseSuccessorsRow {
	return db.LeaseSuccessorsRow{
		DueAt: instant(m.DueAt), ID: m.MessageID,
		Tenant: m.Tenant, Kind: m.Kind, Key: m.Key, OrderKey: m.OrderKey, Priority: m.Priority,
		SourcePosition: m.SourcePosition, SourceEventID: m.SourceEventID, CreatedAt: instant(m.CreatedAt),
		Metadata: m.Metadata, Payload: exact(m.Payload),
		Attempt: m.Attempt, Epoch: m.Epoch, Replays: m.Replays, Unsure: m.Unsure, LeasedUntil: instant(m.LeasedUntil),
	}
}
