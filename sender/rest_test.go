package sender

import (
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

func TestRest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		got        int
		took, want time.Duration
	}{
		{got: 0, took: time.Millisecond}, {got: crowd - 1, took: time.Millisecond},
		{got: crowd, took: time.Millisecond, want: 2 * time.Millisecond},
		{got: 100, took: time.Second, want: longestRest},
	} {
		r := rest{until: now.Add(time.Hour)}
		r.called(test.got, test.took, now)
		if got := max(0, r.until.Sub(now)); got != test.want {
			t.Errorf("after %d in %v it rests for %v, want %v", test.got, test.took, got, test.want)
		}
	}
}

// A backlog is not held up: a pass waits for company only where commits are all there is to lease.
func TestBacklogDoesNotRest(t *testing.T) {
	t.Parallel()
	drained, full := laneOf("a", 0), laneOf("b", 0)
	b := newBacklog(t, map[outbox.Lane]int{drained: 1, full: 1_000})
	b.pass(10)
	if !b.lanes[drained].drained || b.lanes[full].drained {
		t.Fatal("the first lane alone should be drained")
	}
	b.wake()
	if b.hasCommitsAlone() {
		t.Error("there is a backlog")
	}
	for b.due[full] > 0 {
		b.pass(10)
	}
	b.pass(10)
	b.rescan()
	b.wake()
	if !b.hasCommitsAlone() {
		t.Error("there is nothing else")
	}
	b.due[full] = 1_000
	b.rescan() // of the two that the wake-up reopened it finds one
	if b.hasCommitsAlone() {
		t.Error("there is a backlog again")
	}
}
