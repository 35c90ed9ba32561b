package memdb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// A lane is one with pending messages.
type lane struct {
	laneName
	priority int32
	entries  []tables.Queue // in the order of queue_due
}

func laneOf(q tables.Queue) laneName { return laneName{q.Consumer, q.Target, q.Kind, q.Tenant} }

func compareLanes(a, b lane) int {
	return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.target, b.target), cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.priority, b.priority))
}

func byDue(a, b tables.Queue) int {
	return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.MessageID, b.MessageID))
}

// lanes returns the lanes that have pending messages, in order. It is what the index queue_due holds.
func (st *statement) lanes() []lane {
	var lanes []lane
	for _, q := range st.queue.sorted(byDue) {
		if q.State != tables.Pending {
			continue
		}
		l := lane{laneName: laneOf(q), priority: int32(q.Priority)}
		at, found := slices.BinarySearchFunc(lanes, l, compareLanes)
		if !found {
			lanes = slices.Insert(lanes, at, l)
		}
		lanes[at].entries = append(lanes[at].entries, q)
	}
	return lanes
}

// lanesAfter cuts what does not stand after the given place.
func lanesAfter(lanes []lane, name laneName, priority int32) []lane {
	at, found := slices.BinarySearchFunc(lanes, lane{laneName: name, priority: priority}, compareLanes)
	if found {
		at++
	}
	return lanes[at:]
}

// DueLanes implements db.Leaser.
func (s *Store) DueLanes(ctx context.Context, arg db.DueLanesParams) ([]db.DueLanesRow, error) {
	return run(ctx, s, "DueLanes", arg, func(st *statement) []db.DueLanesRow {
		if !st.parallel(len(arg.Kinds), len(arg.Consumers), len(arg.Targets), len(arg.AfterTenants), len(arg.AfterPriorities)) {
			return nil
		}
		lanes := st.lanes()
		var walks [][]lane // of each seed
		for i, kind := range arg.Kinds {
			from := laneName{arg.Consumers[i], arg.Targets[i], kind, arg.AfterTenants[i]}
			walks = append(walks, walk(lanes, from, arg.AfterPriorities[i], arg.AllTenants))
		}
		rows := []db.DueLanesRow{}
		// One step of every seed before the next: a limit cuts all of them alike.
		for step, walking := 0, true; walking; step++ {
			walking = false
			for seed, walk := range walks {
				if step >= len(walk) {
					continue
				}
				walking = true
				l := walk[step]
				if due := l.entries[0].DueAt; !due.After(st.now) && st.pauseMode(l.laneName) < 0 && len(rows) < int(arg.MaxRows) {
					rows = append(rows, db.DueLanesRow{Seed: int32(seed + 1), Tenant: l.tenant, Priority: l.priority, DueAt: due})
				}
			}
		}
		return rows
	})
}

// walk returns a seed's lanes after its place: all those of its kind, or those of exactly its tenant.
func walk(lanes []lane, from laneName, priority int32, allTenants bool) []lane {
	lanes = lanesAfter(lanes, from, priority)
	end := slices.IndexFunc(lanes, func(l lane) bool {
		sameKind := l.consumer == from.consumer && l.target == from.target && l.kind == from.kind
		return !sameKind || !allTenants && l.tenant != from.tenant
	})
	if end < 0 {
		return lanes
	}
	return lanes[:end]
}

// entriesAfter returns the due entries of a lane above its watermark.
func (st *statement) entriesAfter(l lane, due time.Time, id int64) []tables.Queue {
	first := slices.IndexFunc(l.entries, func(q tables.Queue) bool { return byDue(q, tables.Queue{DueAt: due, MessageID: id}) > 0 })
	if first < 0 {
		return nil
	}
	end, _ := slices.BinarySearchFunc(l.entries, tables.Queue{DueAt: st.now, MessageID: math.MaxInt64}, byDue)
	return l.entries[min(first, end):end]
}
