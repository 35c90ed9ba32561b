package sender

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A backlog plays the database to a schedule: so many due messages in each lane. Passes take no time unless a test says so.
type backlog struct {
	*testing.T
	*schedule
	now    time.Time
	due    map[outbox.Lane]int
	leased map[outbox.Lane]int
}

func newBacklog(t *testing.T, due map[outbox.Lane]int) *backlog {
	t.Helper()
	leases := map[string]time.Duration{"charge": 30 * time.Second, "email": 30 * time.Second, "slow": 10 * time.Minute}
	b := &backlog{
		T: t, schedule: newSchedule(500*time.Millisecond, leases), due: due, leased: map[outbox.Lane]int{},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	b.rescan()
	return b
}

func (b *backlog) rescan() {
	var due []outbox.DueLane
	for name, n := range b.due {
		if n > 0 {
			due = append(due, outbox.DueLane{Lane: name, Since: b.now})
		}
	}
	_, _ = b.scan(b.now)
	b.scanned(due, b.now, b.now)
}

// pass makes the next pass and gives what it leased.
func (b *backlog) pass(room int) map[outbox.Lane]int {
	b.Helper()
	p, ok := b.plan(b.now, room)
	if !ok {
		return nil
	}
	leased := map[outbox.Lane]int{}
	progress := make([]outbox.LaneProgress, len(p.lanes))
	left := p.limit
	for i, l := range p.lanes {
		at := &progress[i]
		at.Examined, at.Reached = l.mark, left > 0
		at.Picked = min(b.due[l.Lane], p.quota, left)
		at.Drained = at.Reached && at.Picked < p.quota && at.Picked < left
		if at.Picked > 0 {
			at.Examined.ID += int64(at.Picked)
			leased[l.Lane] = at.Picked
			b.leased[l.Lane] += at.Picked
			b.due[l.Lane] -= at.Picked
			left -= at.Picked
		}
	}
	b.passed(p, progress, p.limit-left, 0, b.now)
	return leased
}

func laneOf(tenant string, priority int16) outbox.Lane {
	return outbox.Lane{Kind: "charge", Tenant: tenant, Priority: priority}
}

// Shows: S4.24
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tenants, room, passes int }{
		{1, 16, 10}, {2, 1, 100}, {3, 1, 99}, {3, 2, 99}, {3, 16, 99}, {7, 16, 100}, {7, 100, 50}, {100, 3, 300}, {1500, 1, 3000}, {1500, 16, 3000},
	} {
		t.Run(fmt.Sprintf("%d tenants, room for %d", test.tenants, test.room), func(t *testing.T) {
			t.Parallel()
			due := map[outbox.Lane]int{}
			for i := range test.tenants {
				due[laneOf(fmt.Sprintf("t%04d", i), 0)] = 1_000_000
			}
			b := newBacklog(t, due)
			for range test.passes {
				b.pass(test.room)
			}
			shares := slices.Sorted(maps.Values(b.leased))
			fair := float64(test.passes*test.room) / float64(test.tenants)
			if least := float64(shares[0]); len(shares) < test.tenants || least < fair/2 {
				t.Errorf("of a fair share of %.1f some tenant got %v (%d of %d tenants had any)", fair, least, len(shares), test.tenants)
			}
			if most := float64(shares[len(shares)-1]); most > 2*fair+leastTurn {
				t.Errorf("of a fair share of %.1f some tenant got %v", fair, most)
			}
		})
	}
}

func TestBusyTenantGetsWhatOthersLeave(t *testing.T) {
	t.Parallel()
	busy, quiet := laneOf("busy", 0), laneOf("quiet", 0)
	b := newBacklog(t, map[outbox.Lane]int{busy: 100, quiet: 1})
	b.pass(10)
	b.pass(10)
	if b.leased[quiet] != 1 || b.leased[busy] < 14 {
		t.Errorf("leased %v", b.leased)
	}
}

// Shows: S4.24
func TestPriorityAndAgeing(t *testing.T) {
	t.Parallel()
	high, low, lowest := laneOf("", 100), laneOf("", 0), laneOf("", -100)
	b := newBacklog(t, map[outbox.Lane]int{high: 1_000_000, low: 1_000_000, lowest: 1_000_000})
	if first := b.pass(16); first[high] != 16 {
		t.Errorf("the first pass leased %v", first)
	}
	for range 799 {
		b.pass(16)
	}
	for name, turns := range map[outbox.Lane]int{high: 700, low: 50, lowest: 50} {
		if got := b.leased[name] / 16; got != turns {
			t.Errorf("priority %d had %d turns of 800, want %d", name.Priority, got, turns)
		}
	}
}

func TestPriorityIsWithinATenant(t *testing.T) {
	t.Parallel()
	loud, modest := laneOf("loud", 32767), laneOf("modest", -32768)
	b := newBacklog(t, map[outbox.Lane]int{loud: 1000, modest: 1000})
	for range 10 {
		b.pass(1)
	}
	if b.leased[loud] != 5 || b.leased[modest] != 5 {
		t.Errorf("leased %v", b.leased)
	}
}

func TestKindsOfOnePriorityTakeTurns(t *testing.T) {
	t.Parallel()
	charge, email := outbox.Lane{Kind: "charge"}, outbox.Lane{Kind: "email"}
	b := newBacklog(t, map[outbox.Lane]int{charge: 1000, email: 1000})
	for range 80 {
		b.pass(1)
	}
	if b.leased[charge] != 40 || b.leased[email] != 40 {
		t.Errorf("leased %v", b.leased)
	}
}

func TestLeasesOfOneLengthShareAPass(t *testing.T) {
	t.Parallel()
	charge, slow := outbox.Lane{Kind: "charge"}, outbox.Lane{Kind: "slow"}
	b := newBacklog(t, map[outbox.Lane]int{charge: 1000, slow: 1000})
	for range 10 {
		if p, _ := b.plan(b.now, 100); len(p.lanes) != 1 || p.lease != b.leases[p.lanes[0].Kind] {
			t.Errorf("planned %d lanes for %v", len(p.lanes), p.lease)
		}
		b.pass(1)
	}
	if b.leased[charge] != 5 || b.leased[slow] != 5 {
		t.Errorf("leased %v", b.leased)
	}
}

func TestPassesGoOnFromTheirMarksAndScansFromTheFront(t *testing.T) {
	t.Parallel()
	name := laneOf("", 0)
	b := newBacklog(t, map[outbox.Lane]int{name: 10})
	mark := func() int64 {
		p, ok := b.plan(b.now, 4)
		if !ok {
			return -1
		}
		return p.planned()[0].After.ID
	}
	for _, want := range []int64{0, 4, 8} {
		if got := mark(); got != want {
			t.Errorf("a pass begins at %d, want %d", got, want)
		}
		b.pass(4)
	}
	if got := mark(); got != -1 {
		t.Errorf("a drained lane is planned from %d on", got)
	}
	b.due[name] = 1
	b.now = b.now.Add(time.Minute)
	b.rescan()
	p, _ := b.plan(b.now, 4)
	if got := p.planned()[0].After; got != (outbox.Mark{Due: b.now}) {
		t.Errorf("after a scan a pass begins at %v, not at the earliest message", got)
	}
}

func TestScanAt(t *testing.T) {
	t.Parallel()
	name := laneOf("", 0)
	const took = 20 * time.Millisecond
	one := []outbox.DueLane{{Lane: name}}
	for _, test := range []struct {
		name  string
		after func(*backlog)
		want  time.Duration // after the scan began
	}{
		{"nothing due", func(b *backlog) { b.scanned(nil, b.now, b.now.Add(took)) }, 500 * time.Millisecond},
		{"something due", func(b *backlog) { b.scanned(one, b.now, b.now.Add(took)) }, time.Second},
		{"the first scan, however slow", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(time.Second))
			b.wake()
		}, time.Second},
		{"one slow scan", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(took))
			b.scanned(nil, b.now, b.now.Add(time.Minute))
		}, time.Minute + 10*took},
		{"a quick scan after a slow one", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(time.Minute))
			b.scanned(nil, b.now, b.now.Add(took))
		}, 500 * time.Millisecond},
		{"two slow scans", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(time.Hour))
			b.scanned(nil, b.now, b.now.Add(time.Minute))
		}, 11 * time.Minute},
		{"a commit", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(took))
			b.scanned(nil, b.now, b.now.Add(took))
			b.wake()
		}, 11 * took},
		{"a commit during the scan", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(took))
			_, _ = b.scan(b.now)
			b.wake()
			b.scanned(nil, b.now, b.now.Add(took))
		}, 11 * took},
		{"a commit before the scan", func(b *backlog) {
			b.wake()
			_, _ = b.scan(b.now)
			b.scanned(nil, b.now, b.now.Add(took))
		}, 500 * time.Millisecond},
		{"the first pass counts", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(time.Minute))
			b.scanned(one, b.now, b.now.Add(took))
			p, _ := b.plan(b.now, 10)
			b.passed(p, []outbox.LaneProgress{{Reached: true, Picked: 3, Drained: true}}, 3, 4*took, b.now.Add(5*took))
		}, 55 * took},
		{"the second pass does not", func(b *backlog) {
			b.scanned(nil, b.now, b.now.Add(time.Minute))
			b.scanned(one, b.now, b.now.Add(took))
			p, _ := b.plan(b.now, 10)
			b.passed(p, []outbox.LaneProgress{{Reached: true, Picked: 10}}, 10, 0, b.now.Add(took))
			b.passed(p, []outbox.LaneProgress{{Reached: true, Drained: true}}, 0, time.Minute, b.now.Add(time.Minute))
		}, 11 * took},
		{"a fruitless pass", func(b *backlog) {
			b.scanned(one, b.now, b.now.Add(took))
			p, _ := b.plan(b.now, 10)
			b.passed(p, []outbox.LaneProgress{{Reached: true, Drained: true}}, 0, took, b.now.Add(2*took))
		}, 500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := &backlog{schedule: newSchedule(500*time.Millisecond, nil), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			test.after(b)
			if got := b.scanAt().Sub(b.now); got != test.want {
				t.Errorf("the next scan is due after %v, want %v", got, test.want)
			}
		})
	}
	if s := newSchedule(time.Second, nil); !s.scanAt().IsZero() || s.exhausted() {
		t.Error("a new schedule does not scan at once")
	}
}

func TestExhausted(t *testing.T) {
	t.Parallel()
	name := laneOf("", 0)
	b := newBacklog(t, map[outbox.Lane]int{name: 2})
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"a scan that found something", func() {}, false},
		{"a pass that leased it", func() { b.pass(10) }, false},
		{"a scan that found nothing", b.rescan, true},
		{"a commit", b.wake, false},
	} {
		step.do()
		if got := b.exhausted(); got != step.want {
			t.Errorf("after %s: exhausted is %v", step.what, got)
		}
	}
}

// after is a delay that does not depend on the failures.
func after(delay time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return delay }
}

func TestUnavailableLaneIsProbed(t *testing.T) {
	t.Parallel()
	dead, fine := laneOf("a", 0), laneOf("b", 0)
	b := newBacklog(t, map[outbox.Lane]int{dead: 100, fine: 100})
	started := b.now
	for range 3 {
		b.take(dead)
	}
	b.now = b.now.Add(time.Second)
	for range 3 { // they ran beside each other
		b.let(dead)
		if n := b.unavailable(dead, started, b.now, after(30*time.Second)); n != 1 {
			t.Errorf("%d failures in a row, want 1", n)
		}
	}
	if got := b.pass(10); got[dead] != 0 || got[fine] != 10 || b.mayStart(dead, b.now) {
		t.Errorf("within the delay a pass leased %v", got)
	}
	b.now = b.now.Add(30 * time.Second)
	if got := b.pass(10); got[dead] != 1 || len(got) != 1 {
		t.Errorf("after the delay a pass leased %v, want a probe", got)
	}
	b.take(dead)
	if !b.mayStart(dead, b.now) {
		t.Error("the probe may not start")
	}
	if got := b.pass(10); got[dead] != 0 {
		t.Errorf("beside the probe a pass leased %v", got)
	}
	b.let(dead)
	if n := b.unavailable(dead, b.now, b.now.Add(time.Second), after(0)); n != 2 {
		t.Errorf("%d failures in a row, want 2", n)
	}
	b.now = b.now.Add(time.Second)
	b.pass(10)
	b.take(dead)
	b.reached(dead)
	b.let(dead)
	if got := b.pass(10); got[dead] != 5 {
		t.Errorf("once the target was reached a pass leased %v", got)
	}
}

func TestTroubleIsForgotten(t *testing.T) {
	t.Parallel()
	name := laneOf("", 0)
	b := newBacklog(t, map[outbox.Lane]int{name: 1})
	b.unavailable(name, b.now, b.now, after(0))
	b.now = b.now.Add(2 * forgetAfter)
	b.rescan()
	if len(b.troubles) != 1 {
		t.Error("forgot the trouble of a lane that has due messages")
	}
	b.due[name] = 0
	b.rescan()
	if len(b.troubles) != 0 {
		t.Error("remembers the trouble of a lane without messages for ever")
	}
}

// A wake-up is answered by a pass over the lanes that had something lately, from a little before their marks, and by a scan after it.
func TestWakeComesBackToLanes(t *testing.T) {
	t.Parallel()
	busy, other := outbox.Lane{Kind: "charge", Tenant: "b"}, outbox.Lane{Kind: "charge", Tenant: "a"}
	b := newBacklog(t, map[outbox.Lane]int{busy: 3, other: 0})
	mark := outbox.Mark{Due: b.now, ID: 7}
	p, _ := b.plan(b.now, 10)
	b.passed(p, []outbox.LaneProgress{{Reached: true, Picked: 3, Drained: true, Examined: mark}}, 3, 0, b.now)
	b.due[busy] = 0
	b.rescan() // finds nothing
	if _, ok := b.plan(b.now, 10); ok || b.hurries() {
		t.Fatal("there is something to pass over before a wake-up")
	}
	for round := range 3 {
		b.wake()
		if !b.hurries() {
			t.Fatal("a scan comes first")
		}
		p, ok := b.plan(b.now, 10)
		if !ok || len(p.lanes) != 1 || p.lanes[0].Lane != busy || p.lanes[0].after() != (outbox.Mark{Due: mark.Due.Add(-overlap)}) {
			t.Fatalf("round %d: plans %+v", round, p)
		}
		b.passed(p, []outbox.LaneProgress{{Reached: true, Drained: true, Examined: mark}}, 0, 0, b.now)
		b.wake()
		if b.hurries() {
			t.Fatal("wake-ups starve the scan")
		}
		b.rescan()
	}
	if b.open != 0 || b.leasable() {
		t.Errorf("%d lanes are open", b.open)
	}
}

// What is committed while a pass or a scan runs, which may not have seen it, is passed over at once too.
func TestWakeWhileTheDatabaseIsAsked(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, map[outbox.Lane]int{laneOf("", 0): 3})
	nothing := []outbox.LaneProgress{{Reached: true, Drained: true, Examined: outbox.Mark{Due: b.now}}}
	p, _ := b.plan(b.now, 10)
	b.wake()
	b.passed(p, []outbox.LaneProgress{{Reached: true, Picked: 3, Drained: true, Examined: outbox.Mark{Due: b.now}}}, 3, 0, b.now)
	if !b.hurries() || !b.hasCommitsAlone() {
		t.Error("what was committed during a pass waits for a scan")
	}
	p, _ = b.plan(b.now, 10)
	b.passed(p, nothing, 0, 0, b.now)
	if b.leasable() || b.hasCommitsAlone() {
		t.Error("a lane without messages is passed over again")
	}
	b.scan(b.now)
	b.wake()
	b.scanned(nil, b.now, b.now)
	if !b.hurries() {
		t.Error("what was committed during a scan waits for the next")
	}
}

// The pass that answers a wake-up is no part of the scan before it, and holds up the one after it no longer than that scan did.
func TestPassForAWakeIsNoScan(t *testing.T) {
	t.Parallel()
	took := 20 * time.Millisecond
	lane := outbox.Lane{Kind: "charge"}
	b := newBacklog(t, map[outbox.Lane]int{lane: 3})
	p, _ := b.plan(b.now, 10)
	b.passed(p, []outbox.LaneProgress{{Reached: true, Picked: 3, Drained: true, Examined: outbox.Mark{Due: b.now}}}, 3, 0, b.now)
	b.scanned(nil, b.now, b.now.Add(took))
	b.scanned(nil, b.now, b.now.Add(took))
	b.wake()
	p, _ = b.plan(b.now, 10)
	if b.passed(p, []outbox.LaneProgress{{Reached: true, Drained: true}}, 0, time.Minute, b.now.Add(time.Minute)) {
		t.Error("the pass counts as a rescan")
	}
	if got := b.scanAt().Sub(b.now); got != 11*took {
		t.Errorf("the next scan is due after %v, want %v", got, 11*took)
	}
}

// A lane is passed over for what was committed to others a few times, and then no more.
func TestWakeLeavesLanesThatHaveNothing(t *testing.T) {
	t.Parallel()
	lane := outbox.Lane{Kind: "charge"}
	b := newBacklog(t, map[outbox.Lane]int{lane: 3})
	p, _ := b.plan(b.now, 10)
	b.passed(p, []outbox.LaneProgress{{Reached: true, Picked: 3, Drained: true, Examined: outbox.Mark{Due: b.now}}}, 3, 0, b.now)
	passes := 0
	for range 100 {
		b.wake()
		if p, ok := b.plan(b.now, 10); ok {
			b.passed(p, []outbox.LaneProgress{{Reached: true, Drained: true}}, 0, 0, b.now)
			passes++
		}
	}
	if passes != mostMisses {
		t.Errorf("%d passes got nothing, want %d", passes, mostMisses)
	}
}
