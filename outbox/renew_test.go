package outbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
)

func TestRenewAnswersForEveryLease(t *testing.T) {
	t.Parallel()
	var lost []string
	observer := &Observer{LeaseLost: func(_ context.Context, m Message) { lost = append(lost, m.Key) }}
	b := newBench(t, Config{Observer: observer}, Policy{})
	stale := b.leaseOne("twice leased")
	b.store.Age(time.Minute)
	fresh := b.lease(1)[0]
	kept, cancelled, settled := b.leaseOne("kept"), b.leaseOne("cancelled"), b.leaseOne("settled")
	if _, err := b.box.Cancel(t.Context(), AllTenants, []int64{cancelled.ID}, By{"ann", "test"}); err != nil {
		t.Fatal(err)
	}
	b.settle(settled, Delivered())
	renewals, err := b.box.Renew(t.Context(), []Message{settled, fresh, cancelled, stale, kept}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, r := range renewals {
		errs = append(errs, r.Err)
		if extended := time.Until(r.Until) > 9*time.Minute; extended != (r.Err == nil) {
			t.Errorf("renewed until %v with %v", r.Until, r.Err)
		}
	}
	if !slices.Equal(errs, []error{ErrLeaseLost, nil, ErrCancelled, ErrLeaseLost, nil}) {
		t.Errorf("renewed with %v", errs)
	}
	if !slices.Equal(lost, []string{"twice leased"}) { // nobody took the other: its own delivery came first
		t.Errorf("lost %v", lost)
	}
	// Never shortens.
	renewals, err = b.box.Renew(t.Context(), []Message{kept}, time.Second)
	if err != nil || time.Until(renewals[0].Until) < 9*time.Minute {
		t.Errorf("shortened to %v, %v", renewals, err)
	}
}

func TestRenewTellsOfAPause(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	m := b.leaseOne("k")
	for _, test := range []struct {
		mode PauseMode
		want error
	}{{PauseLeasing, nil}, {PauseCancel, ErrPaused}} {
		if _, err := b.box.Pause(t.Context(), AllTenants, Everything, test.mode, By{"ann", "test"}); err != nil {
			t.Fatal(err)
		}
		renewals, err := b.box.Renew(t.Context(), []Message{m}, time.Minute)
		if err != nil || renewals[0].Err != test.want || renewals[0].Until.IsZero() {
			t.Errorf("mode %d: %+v, %v", test.mode, renewals, err)
		}
	}
	if err := b.box.Release(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := b.show(m.ID); got.State != StatePending || got.Attempt != 0 || got.Epoch != 1 {
		t.Errorf("given back as %+v", got)
	}
}

// That a lease is gone is certain even when the query that tells why fails.
func TestRenewWithoutClassification(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	m := b.leaseOne("k")
	b.settle(m, Delivered())
	down := errors.New("down")
	fail := func(operation string) {
		b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation == operation {
				return down
			}
			return nil
		}})
	}
	fail("FindFates")
	if renewals, err := b.box.Renew(t.Context(), []Message{m}, time.Minute); err != nil || renewals[0].Err != ErrLeaseLost {
		t.Errorf("answered %+v, %v", renewals, err)
	}
	fail("Renew")
	if renewals, err := b.box.Renew(t.Context(), []Message{m}, time.Minute); !errors.Is(err, down) || renewals != nil {
		t.Errorf("answered %+v, %v", renewals, err)
	}
}

func TestReleaseGivesBackWhatIsHeld(t *testing.T) {
	t.Parallel()
	var given []string
	observer := &Observer{GivenBack: func(_ context.Context, messages []Message) {
		for _, m := range messages {
			given = append(given, m.Key)
		}
	}}
	b := newBench(t, Config{Observer: observer}, Policy{})
	stale := b.leaseOne("a")
	b.store.Age(time.Minute)
	fresh, other := b.lease(1)[0], b.leaseOne("b")
	if err := b.box.ReleaseMany(t.Context(), []Releasing{{Message: other, Started: true}, {Message: stale}, {Message: fresh}, {Message: fresh}}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(given)
	if !slices.Equal(given, []string{"a", "b"}) {
		t.Errorf("gave back %v", given)
	}
	if got := b.show(fresh.ID); got.Attempt != 1 || got.Epoch != 2 || got.State != StatePending {
		t.Errorf("given back as %+v", got)
	}
	if err := b.box.Release(t.Context(), Message{ID: fresh.ID}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a message made by hand: %v", err)
	}
	got := b.lease(2)
	if len(got) != 2 || got[0].Epoch < 2 {
		t.Fatalf("leased again: %v", got)
	}
	for _, m := range got { // one was lost before, the handler of the other had started
		if !m.Unsure {
			t.Errorf("message %q is not unsure", m.Key)
		}
	}
}

func TestBatchesAreSortedDistinctAndBounded(t *testing.T) {
	t.Parallel()
	ids := []int64{5, 3, 5, 1, 5, 3}
	for i := range 2500 {
		ids = append(ids, int64(5000-i))
	}
	seen := map[int]bool{}
	for _, batch := range batches(places(len(ids)), func(i int) int64 { return ids[i] }) {
		if len(batch) == 0 || len(batch) > maxBatch {
			t.Errorf("a batch of %d", len(batch))
		}
		for n, i := range batch {
			if seen[i] || n > 0 && ids[batch[n-1]] >= ids[i] {
				t.Fatalf("batch %v", batch)
			}
			seen[i] = true
		}
	}
	if len(seen) != len(ids) {
		t.Errorf("%d of %d places are in a batch", len(seen), len(ids))
	}
	if got := batches(places(4), func(i int) int64 { return ids[i] }); !slices.EqualFunc(got, [][]int{{3, 1, 0}, {2}}, slices.Equal) {
		t.Errorf("batches %v", got)
	}
	if got := batches(nil, nil); len(got) != 0 {
		t.Errorf("batches of nothing %v", got)
	}
}
