package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

// Shows: S3.14
func TestLeaseGivesWhatWasStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	given := sampleEffect()
	given.Priority, given.SourcePosition, given.SourceEventID = 3, 42, "event"
	id := b.enqueue(given)[0].ID
	m := b.lease(1)[0]
	if m.ID != id || m.Tenant != given.Tenant || m.Consumer != "wallets" || m.Target != "ledger" || m.Kind != "charge" || m.Key != given.Key ||
		m.OrderKey != given.OrderKey || m.Priority != 3 || string(m.Payload) != string(given.Payload) || m.Metadata["a"] != "1" ||
		m.SourcePosition != 42 || m.SourceEventID != "event" {
		t.Errorf("leased %+v", m)
	}
	if m.Attempt != 1 || m.Epoch != 1 || m.Unsure || m.Replays != 0 || m.Fence() != (Fence{MessageID: id, Epoch: 1}) {
		t.Errorf("leased as %+v", m)
	}
	if left := time.Until(m.LeasedUntil); left < 20*time.Second || left > 31*time.Second || m.LeasedUntil.Location() != time.UTC {
		t.Errorf("leased until %v", m.LeasedUntil)
	}
	if again := b.lease(1); len(again) != 0 {
		t.Errorf("leased twice: %v", again)
	}
	empty := effect("empty")
	empty.Payload = nil
	b.enqueue(empty)
	if m := b.lease(1)[0]; m.Payload == nil || len(m.Payload) != 0 || m.Metadata != nil {
		t.Errorf("nothing came back as %#v, %v", m.Payload, m.Metadata)
	}
}

// Shows: S3.13
func TestMessageTellsNoSecrets(t *testing.T) {
	t.Parallel()
	log := &recorder{}
	b := newBench(t, Config{}, Policy{})
	e := effect("k")
	e.Payload, e.Metadata = []byte("hunter2"), map[string]string{"a": "hunter2"}
	b.enqueue(e)
	m := b.lease(1)[0]
	log.logger().Info("leased", "message", m, "pointer", &m)
	text := fmt.Sprint(log.lines(), m, &m) + fmt.Sprintf("%v %+v %#v %s", m, m, m, m)
	for _, secret := range []string{"hunter2", fmt.Sprint(m.token[:]), fmt.Sprintf("%x", m.token)} {
		if strings.Contains(text, secret) {
			t.Errorf("%q appears in %s", secret, text)
		}
	}
}

func TestLeaseTakesHighestPriorityThenLongestWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i, priority := range []int16{0, 5, -5, 5} {
		e := effect(fmt.Sprint(i))
		e.Priority, e.Tenant = priority, fmt.Sprint("tenant ", i)
		effects = append(effects, e)
		b.enqueue(e)
	}
	var keys []string
	for range effects {
		keys = append(keys, b.lease(1)[0].Key)
	}
	if !slices.Equal(keys, []string{"1", "3", "0", "2"}) {
		t.Errorf("leased in the order %v", keys)
	}
}

// More lanes than one statement serves: priority counts among all, and those behind the first thousand are served though these are held.
func TestLeaseLooksAtAllLanes(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range maxBatch + 2 {
		e := effect("k")
		e.Tenant = fmt.Sprintf("%04d", i)
		if i == maxBatch+1 {
			e.Priority = 1
		}
		effects = append(effects, e)
	}
	for chunk := range slices.Chunk(effects, maxBatch) {
		b.enqueue(chunk...)
	}
	for i, want := range []int{1, maxBatch, 1, 0} {
		messages, err := b.box.Lease(t.Context(), b.consumer, LeaseRequest{Kinds: []string{"charge"}, Scope: AllTenants, Limit: max(want, 1), For: time.Minute})
		if err != nil || len(messages) != want || i == 0 && messages[0].Priority != 1 {
			t.Errorf("call %d leased %d messages, %v", i, len(messages), err)
		}
	}
}

func TestLeaseBuriesAndGoesOn(t *testing.T) {
	t.Parallel()
	var dead []Burial
	observer := &Observer{Dead: func(_ context.Context, burial Burial) { dead = append(dead, burial) }}
	b := newBench(t, Config{Observer: observer}, Policy{MaxAttempts: 1})
	b.enqueue(effect("killer"), effect("killer too"))
	b.lease(2)
	b.store.Age(time.Minute)
	b.enqueue(effect("next"))
	// Both lost leases fill the pass, and yet the call finds what comes after.
	messages, err := b.box.Lease(t.Context(), b.consumer, LeaseRequest{Kinds: []string{"charge"}, Limit: 2, For: time.Second})
	if err != nil || len(messages) != 1 || messages[0].Key != "next" {
		t.Errorf("leased %v, %v", messages, err)
	}
	if len(dead) != 2 || dead[0].Cause != CauseExhausted || dead[0].Message.Key != "killer" || dead[0].Message.leased() || dead[0].Reason == "" {
		t.Errorf("dead %+v", dead)
	}
	if got := b.show(dead[0].Message.ID); got.State != StateDead || got.Cause != CauseExhausted || got.Epoch != 1 {
		t.Errorf("stored %+v", got)
	}
}

// A pass that stops at its bound on entries goes on from there.
func TestLeaseGoesBeyondTheBound(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 1100 {
		e := effect(fmt.Sprint(i))
		e.OrderKey = "hot"
		effects = append(effects, e)
	}
	b.enqueue(append(effects, effect("free"))...)
	if got := b.lease(1); len(got) != 1 || got[0].Key != "0" {
		t.Fatalf("leased %v", got)
	}
	if got := b.lease(1); len(got) != 1 || got[0].Key != "free" {
		t.Errorf("leased %v", got)
	}
	pass, err := b.box.LeaseLanes(t.Context(), LeasePlan{
		Consumer: b.consumer, For: time.Second, Quota: 5, Limit: 5, Lanes: []PlannedLane{{Lane: Lane{Kind: "charge"}}},
	})
	if err != nil || len(pass.Messages) != 0 || !pass.Lanes[0].Bound || pass.Lanes[0].Examined.ID != 1000 || pass.Now.IsZero() {
		t.Errorf("passed %+v, %v", pass, err)
	}
}

// A lane that was examined up to the bound is not taken for drained when a later lane fills the pass.
func TestBoundBesideALaneThatFillsThePass(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 1100 {
		e := effect(fmt.Sprint(i))
		e.OrderKey = "hot"
		effects = append(effects, e)
	}
	busy := effect("busy")
	busy.Kind = "push"
	b.enqueue(append(effects, busy)...)
	plan := LeasePlan{
		Consumer: b.consumer, For: time.Second, Quota: 1, Limit: 1, Lanes: []PlannedLane{{Lane: Lane{Kind: "charge"}}, {Lane: Lane{Kind: "push"}}},
	}
	if pass, err := b.box.LeaseLanes(t.Context(), plan); err != nil || len(pass.Messages) != 1 {
		t.Fatalf("passed %+v, %v", pass, err)
	}
	pass, err := b.box.LeaseLanes(t.Context(), plan)
	if err != nil || len(pass.Messages) != 1 || pass.Messages[0].Kind != "push" {
		t.Fatalf("passed %+v, %v", pass, err)
	}
	if hot := pass.Lanes[0]; !hot.Bound || hot.Drained || hot.Examined.ID != 1000 {
		t.Errorf("the lane with the hot key %+v", hot)
	}
}

// Shows: S1.15 S1.16
func TestLeaseLanesBoundsItsArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{MaxAttempts: 7, MaxAge: time.Hour})
	var last db.LeaseDueParams
	b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		last = call.Params.(db.LeaseDueParams)
		return nil
	}})
	after := Mark{Due: time.Date(2030, 1, 1, 12, 0, 0, 1999, time.FixedZone("x", 3600)), ID: 9}
	_, err := b.box.LeaseLanes(t.Context(), LeasePlan{
		Consumer: b.consumer, Worker: 3, For: 1, Quota: 1 << 40, Limit: 1 << 40, Scope: Tenants("b", "a", "b"),
		Lanes: []PlannedLane{{Lane: Lane{Kind: "charge", Tenant: "a", Priority: 2}, After: after}},
	})
	if err != nil {
		t.Fatal(err)
	}
	due := time.Date(2030, 1, 1, 11, 0, 0, 1000, time.UTC)
	if last.Lease != 1000 || last.Quota != 1000 || last.MaxRows != 1000 || last.Examine != 10_000 || last.Worker != 3 ||
		last.LongestLease != time.Hour.Microseconds() || last.AllTenants || !slices.Equal(last.Scope, []string{"a", "b"}) ||
		!last.AfterDues[0].Equal(due) || last.AfterDues[0].Location() != time.UTC || last.AfterIds[0] != 9 ||
		last.AttemptLimits[0] != 7 || last.MaxAges[0] != time.Hour.Microseconds() {
		t.Errorf("sent %+v", last)
	}
	first := slices.Clone(last.Token)
	if _, err := b.box.LeaseLanes(t.Context(), LeasePlan{
		Consumer: b.consumer, For: time.Second, Quota: 1, Limit: 1, Lanes: []PlannedLane{{Lane: Lane{Kind: "charge"}}},
	}); err != nil || slices.Equal(first, last.Token) || slices.Equal(first, db.FreeToken) {
		t.Errorf("tokens %x and %x, %v", first, last.Token, err)
	}
}

func TestDueLanesPagesThroughAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 1700 {
		e := effect(fmt.Sprint(i))
		e.Tenant, e.Priority, e.Kind = fmt.Sprintf("t%04d", i/2), int16(i%2), []string{"charge", "refund"}[i%3%2]
		effects = append(effects, e)
	}
	deferred := effect("later")
	deferred.Tenant, deferred.Delay = "deferred", time.Hour
	b.enqueue(append(effects, deferred)...)
	calls := b.calls()
	for _, test := range []struct {
		query       LaneQuery
		lanes, sent int
	}{
		{LaneQuery{Kinds: []string{"charge", "refund", "charge"}, Scope: AllTenants, Limit: 10_000}, 1700, 2},
		{LaneQuery{Kinds: []string{"charge", "refund"}, Scope: AllTenants, Limit: 1000}, 1000, 1},
		{LaneQuery{Kinds: []string{"charge", "refund"}, Scope: AllTenants, Limit: 1001}, 1001, 2},
		{LaneQuery{Kinds: []string{"charge", "refund"}, Scope: Tenants("t0001", "t0002", "nobody"), Limit: 10}, 4, 1},
		{LaneQuery{Kinds: []string{"charge", "refund"}, Limit: 10}, 0, 1},
		{LaneQuery{Kinds: []string{"charge"}, Scope: AllTenants}, 0, 0},
		{LaneQuery{Kinds: []string{"charge"}, Scope: AllTenants, Limit: -1}, 0, 0},
		{LaneQuery{Scope: AllTenants, Limit: 10}, 0, 0},
	} {
		test.query.Consumer = b.consumer
		*calls = nil
		lanes, err := b.box.DueLanes(t.Context(), test.query)
		seen := map[Lane]bool{}
		for _, lane := range lanes {
			seen[lane.Lane] = true
		}
		if err != nil || len(lanes) != test.lanes || len(seen) != test.lanes || len(*calls) != test.sent {
			t.Errorf("%+v: %d lanes, %d distinct, %d statements, %v", test.query, len(lanes), len(seen), len(*calls), err)
		}
	}
}

func TestSuccessorsFollowSettledKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 6 {
		e := effect(fmt.Sprint(i))
		e.OrderKey = []string{"x", "y", ""}[i%3]
		effects = append(effects, e)
	}
	b.enqueue(effects...)
	messages := b.lease(6)
	if len(messages) != 4 {
		t.Fatalf("leased %v", messages)
	}
	for _, m := range messages {
		b.settle(m, Delivered())
	}
	next, err := b.box.LeaseSuccessors(t.Context(), SuccessorPlan{
		Consumer: b.consumer, For: time.Second, Kinds: []string{"charge", "charge"}, Settled: append(messages, messages...),
	})
	if err != nil || len(next) != 2 || next[0].Key != "3" || next[1].Key != "4" || !next[0].leased() {
		t.Errorf("followed by %v, %v", next, err)
	}
	if got := b.settle(next[1], Delivered()); got.Status != Acknowledged {
		t.Errorf("settled as %+v", got)
	}
	calls := b.calls()
	for _, plan := range []SuccessorPlan{
		{Consumer: b.consumer, For: time.Second, Settled: messages},
		{Consumer: b.consumer, For: time.Second, Kinds: []string{"charge"}, Settled: messages[2:3]},
	} {
		if next, err := b.box.LeaseSuccessors(t.Context(), plan); err != nil || len(next) != 0 || len(*calls) != 0 {
			t.Errorf("nothing to follow: %v, %v, sent %v", next, err, *calls)
		}
	}
}
