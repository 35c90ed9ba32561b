package outbox

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// LaneProgress says how far a pass examined one lane.
type LaneProgress struct {
	// Examined is the mark to hand to the next pass.
	Examined Mark
	// Picked counts messages leased, buried or refused by their order key.
	Picked int
	// Drained: everything that was due is examined; only a rescan from the front finds more before something new comes due.
	Drained bool
	// Reached: the pass came to this lane before it had its limit.
	Reached bool
	// Bound: the pass stopped after the entries it may examine of one lane without filling the quota. Go on there at once.
	Bound bool
}

// examined is how many index entries a pass may look at in one lane: enough for ten times its quota of entries that do not count.
func examined(quota int) int { return max(1000, 10*quota) }

// laneProgress applies the rule of watermarks to the rows of a pass. Lanes are served in order until the limit is reached:
//
//	quota filled, or cut by the limit   up to its last picked row
//	stopped by the bound on entries     up to the last entry seen
//	reached, quota not filled           up to the pass's now: what came due in that very instant is looked at again
//	not reached                         keeps its mark
//
// A mark saves work and decides nothing: what lies below it (late commits, leases that ran out) is found by a rescan.
func laneProgress(lanes []PlannedLane, rows []db.LeaseDueRow, quota, limit int) []LaneProgress {
	progress := make([]LaneProgress, len(lanes))
	for i, lane := range lanes {
		progress[i].Examined = lane.After
	}
	var now time.Time
	picked, last := 0, -1
	for _, row := range rows {
		i := int(row.LaneNo) - 1
		at := Mark{Due: row.DueAt.UTC(), ID: row.ID}
		switch row.Fate {
		case db.FateClosing:
			now = at.Due
		case db.FateBound:
			progress[i].Examined, progress[i].Bound = at, true
		default:
			picked++
			last = max(last, i)
			p := &progress[i]
			if !p.Bound && (p.Picked == 0 || p.Examined.before(at)) {
				p.Examined = at
			}
			p.Picked++
		}
	}
	if now.IsZero() {
		return progress // no statement was sent
	}
	cut := picked >= limit
	for i := range progress {
		p := &progress[i]
		p.Reached = !cut || i <= last
		if p.Reached && !p.Bound && p.Picked < quota && !(cut && i == last) {
			p.Examined, p.Drained = Mark{Due: now}, true
		}
	}
	return progress
}

// before orders marks as leasing does.
func (m Mark) before(other Mark) bool {
	return m.Due.Before(other.Due) || m.Due.Equal(other.Due) && m.ID < other.ID
}
