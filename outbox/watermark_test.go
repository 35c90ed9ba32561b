package outbox

import (
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// The rule of watermarks, row by row. Marks: lane "a" was examined up to 1 s before, "b" and "c" from the front.
func TestLaneProgress(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int, id int64) Mark {
		return Mark{Due: now.Add(time.Duration(seconds) * time.Second), ID: id}
	}
	pick := func(lane, fate int32, m Mark) db.LeaseDueRow {
		return db.LeaseDueRow{LaneNo: lane, Fate: fate, DueAt: m.Due, ID: m.ID}
	}
	granted := func(lane int32, m Mark) db.LeaseDueRow { return pick(lane, db.FateGranted, m) }
	closing := db.LeaseDueRow{Fate: db.FateClosing, DueAt: now}
	lanes := []PlannedLane{{Lane: Lane{Kind: "a"}, After: at(-10, 3)}, {Lane: Lane{Kind: "b"}}, {Lane: Lane{Kind: "c"}}}
	drained := LaneProgress{Examined: Mark{Due: now}, Drained: true, Reached: true}
	drainedWith := func(picked int) LaneProgress { p := drained; p.Picked = picked; return p }
	kept := func(m Mark) LaneProgress { return LaneProgress{Examined: m} }

	for name, test := range map[string]struct {
		quota, limit int
		rows         []db.LeaseDueRow
		want         []LaneProgress
	}{
		"nothing was sent": {2, 9, nil, []LaneProgress{kept(at(-10, 3)), {}, {}}},
		"nothing is due":   {2, 9, []db.LeaseDueRow{closing}, []LaneProgress{drained, drained, drained}},
		"quota not filled": {3, 9, []db.LeaseDueRow{granted(1, at(-5, 7)), granted(2, at(-9, 2)), closing},
			[]LaneProgress{drainedWith(1), drainedWith(1), drained}},
		"quota filled, rows in any order": {2, 9, []db.LeaseDueRow{granted(1, at(-4, 1)), granted(1, at(-5, 9)), closing},
			[]LaneProgress{{Examined: at(-4, 1), Picked: 2, Reached: true}, drained, drained}},
		"the later id of one instant": {2, 9, []db.LeaseDueRow{granted(1, at(-5, 9)), granted(1, at(-5, 8)), closing},
			[]LaneProgress{{Examined: at(-5, 9), Picked: 2, Reached: true}, drained, drained}},
		"buried and refused rows count": {3, 9, []db.LeaseDueRow{pick(2, db.FateBuried, at(-8, 1)), pick(2, db.FateRefused, at(-3, 2)),
			granted(2, at(-6, 3)), closing},
			[]LaneProgress{drained, {Examined: at(-3, 2), Picked: 3, Reached: true}, drained}},
		"cut by the limit": {3, 3, []db.LeaseDueRow{granted(1, at(-5, 7)), granted(1, at(-4, 8)), granted(2, at(-9, 2)), closing},
			[]LaneProgress{drainedWith(2), {Examined: at(-9, 2), Picked: 1, Reached: true}, {}}},
		"limit reached in the last lane": {3, 1, []db.LeaseDueRow{granted(3, at(-9, 2)), closing},
			[]LaneProgress{drained, drained, {Examined: at(-9, 2), Picked: 1, Reached: true}}},
		"limit and quota at once": {2, 2, []db.LeaseDueRow{granted(1, at(-5, 7)), granted(1, at(-4, 8)), closing},
			[]LaneProgress{{Examined: at(-4, 8), Picked: 2, Reached: true}, {}, {}}},
		"stopped by the bound": {3, 9, []db.LeaseDueRow{granted(2, at(-9, 2)), pick(2, db.FateBound, at(-7, 99)), closing},
			[]LaneProgress{drained, {Examined: at(-7, 99), Picked: 1, Reached: true, Bound: true}, drained}},
		"stopped by the bound, named first": {3, 9, []db.LeaseDueRow{pick(2, db.FateBound, at(-7, 99)), granted(2, at(-9, 2)), closing},
			[]LaneProgress{drained, {Examined: at(-7, 99), Picked: 1, Reached: true, Bound: true}, drained}},
		"stopped by the bound, cut in a later lane": {3, 1, []db.LeaseDueRow{pick(1, db.FateBound, at(-7, 99)), granted(2, at(-9, 2)), closing},
			[]LaneProgress{{Examined: at(-7, 99), Reached: true, Bound: true}, {Examined: at(-9, 2), Picked: 1, Reached: true}, {}}},
		"a mark ahead of a clock that stepped back": {2, 9, []db.LeaseDueRow{{Fate: db.FateClosing, DueAt: now.Add(-time.Hour)}},
			slices.Repeat([]LaneProgress{{Examined: at(-3600, 0), Drained: true, Reached: true}}, 3)},
	} {
		if got := laneProgress(lanes, test.rows, test.quota, test.limit); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, test.want)
		}
	}
}

func TestExaminedIsBounded(t *testing.T) {
	t.Parallel()
	for quota, want := range map[int]int{1: 1000, 100: 1000, 101: 1010, 1000: 10_000} {
		if got := examined(quota); got != want {
			t.Errorf("quota %d: %d, want %d", quota, got, want)
		}
	}
}
