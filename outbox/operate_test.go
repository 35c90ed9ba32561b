package outbox

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var ann = By{Actor: "ann", Reason: "a test"}

// B23: cancel has a named outcome for every state, and a foreign message is not found.
func TestCancelNamesEveryOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	leased, parked, delivered := b.leaseOne("leased"), b.leaseOne("parked"), b.leaseOne("delivered")
	b.settle(parked, Failed(Unknown(errDown)))
	b.settle(delivered, Delivered())
	foreign := effect("foreign")
	foreign.Tenant = "acme"
	receipts := b.enqueue(effect("pending"), foreign)
	ids := []int64{delivered.ID, receipts[0].ID, leased.ID, 999, receipts[1].ID, parked.ID, leased.ID, -1}
	answers, err := b.box.Cancel(t.Context(), Scope{}, ids, ann)
	if err != nil {
		t.Fatal(err)
	}
	want := []Acted{
		{delivered.ID, NotOpen, StateDelivered}, {receipts[0].ID, Done, StateCancelled}, {leased.ID, Done, StateCancelled}, {999, NotFound, ""},
		{receipts[1].ID, NotFound, ""}, {parked.ID, Done, StateCancelled}, {leased.ID, Done, StateCancelled}, {-1, NotFound, ""},
	}
	if !slices.Equal(answers, want) {
		t.Errorf("got  %+v\nwant %+v", answers, want)
	}
	if got := b.settle(leased, Delivered()); got.Status != StaleLease {
		t.Errorf("a late settle: %+v", got)
	}
	again, err := b.box.Cancel(t.Context(), Scope{}, []int64{leased.ID}, ann)
	if err != nil || again[0] != (Acted{leased.ID, NotOpen, StateCancelled}) {
		t.Errorf("again: %+v, %v", again, err)
	}
	audits := b.store.Dump().Audits
	if len(audits) != 3 || audits[0].Actor != "ann" || audits[0].Reason != "a test" || audits[0].Action != "cancel" {
		t.Errorf("audited %+v", audits)
	}
}

// Shows: S1.32
func TestReplayBringsBack(t *testing.T) {
	t.Parallel()
	for _, attempts := range []Attempts{PreserveAttempts, ResetAttempts} {
		b := newBench(t, Config{}, Policy{MaxAttempts: 1})
		dead := b.leaseOne("dead")
		b.settle(dead, Failed(errDown))
		pending := b.enqueue(effect("pending"))[0]
		foreign, err := b.box.Replay(t.Context(), Tenants("acme"), []int64{dead.ID}, attempts, ann)
		if err != nil || foreign[0] != (Acted{dead.ID, NotDead, ""}) {
			t.Errorf("foreign: %+v, %v", foreign, err)
		}
		answers, err := b.box.Replay(t.Context(), Scope{}, []int64{pending.ID, dead.ID, 999}, attempts, ann)
		want := []Acted{{pending.ID, NotDead, StatePending}, {dead.ID, Done, StatePending}, {999, NotDead, ""}}
		if err != nil || !slices.Equal(answers, want) {
			t.Errorf("got %+v, %v", answers, err)
		}
		var second Message
		for _, m := range b.lease(2) {
			if m.ID == dead.ID {
				second = m
			}
		}
		wantAttempt := map[Attempts]int{PreserveAttempts: 2, ResetAttempts: 1}[attempts]
		if second.Attempt != wantAttempt || second.Epoch != 2 || second.Replays != 1 || string(second.Payload) != string(dead.Payload) {
			t.Errorf("leased again as %+v", second)
		}
		if got := b.settle(second, Failed(errDown)); got.Status != DeadLettered || got.Cause != CauseAttempts || got.Attempt != wantAttempt {
			t.Errorf("failed again: %+v", got)
		}
	}
}

func TestReplayMatchingPagesAndCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 25 {
		e := effect(strings.Repeat("k", i+1))
		e.Kind = []string{"charge", "refund"}[i%5/4]
		effects = append(effects, e)
	}
	b.enqueue(effects...)
	messages, err := b.box.Lease(t.Context(), b.consumer, LeaseRequest{Kinds: []string{"charge", "refund"}, Limit: 100, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		b.settle(m, Failed(Permanent(errDown)))
	}
	for _, dry := range []bool{true, false} {
		matched, replayed := 0, 0
		bulk := BulkReplay{Filter: Filter{Kind: "charge"}, Attempts: ResetAttempts, Limit: 7, DryRun: dry}
		for {
			got, err := b.box.ReplayMatching(t.Context(), Scope{}, bulk, ann)
			if err != nil || got.Matched > 7 {
				t.Fatal(got, err)
			}
			matched, replayed, bulk.From = matched+got.Matched, replayed+got.Replayed, got.Next
			if !got.More {
				break
			}
		}
		if wantReplayed := map[bool]int{true: 0, false: 20}[dry]; matched != 20 || replayed != wantReplayed {
			t.Errorf("dry %t: matched %d, replayed %d", dry, matched, replayed)
		}
	}
	if n := len(b.store.Dump().Settlements); n != 5 {
		t.Errorf("%d dead ones are left", n)
	}
	calls := b.calls()
	for name, bulk := range map[string]BulkReplay{
		"no filter":   {Attempts: ResetAttempts, Limit: 1},
		"no attempts": {All: true, Limit: 1},
	} {
		if _, err := b.box.ReplayMatching(t.Context(), Scope{}, bulk, ann); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := b.box.ReplayMatching(t.Context(), Scope{}, BulkReplay{All: true, Attempts: ResetAttempts}, ann); err != nil || got != (BulkReplayed{}) {
		t.Errorf("limit 0: %+v, %v", got, err)
	}
	if len(*calls) != 0 {
		t.Errorf("sent %v", *calls)
	}
}

func TestResolveDecidesParked(t *testing.T) {
	t.Parallel()
	for as, state := range map[Resolution]State{
		AsDelivered: StateDelivered, AsDead: StateDead, AsDeadBlocking: StateDead, AsRetry: StatePending,
	} {
		b := newBench(t, Config{}, Policy{MaxAttempts: 1})
		e := effect("parked")
		e.OrderKey = "account"
		b.enqueue(e)
		parked := b.lease(1)[0]
		b.settle(parked, Failed(Unknown(errDown)))
		e.Key = "next"
		next := b.enqueue(e)[0]
		answers, err := b.box.Resolve(t.Context(), Scope{}, []int64{next.ID, parked.ID, 999}, as, ann)
		want := []Acted{{next.ID, NotParked, StatePending}, {parked.ID, Done, state}, {999, NotFound, ""}}
		if err != nil || !slices.Equal(answers, want) {
			t.Errorf("%d: %+v, %v", as, answers, err)
		}
		again := b.lease(2)
		switch as {
		case AsRetry:
			if len(again) != 1 || again[0].ID != parked.ID || !again[0].Unsure || again[0].Attempt != 2 {
				t.Errorf("leased after a retry: %v", again)
			}
		case AsDeadBlocking:
			if len(again) != 0 {
				t.Errorf("a blocked key went on: %v", again)
			}
			key := OrderKey{Consumer: "wallets", Target: "ledger", Key: "account"}
			for _, want := range []bool{true, false} {
				if freed, err := b.box.Unblock(t.Context(), Scope{}, key, ann); err != nil || freed != want {
					t.Errorf("unblocked: %t, %v", freed, err)
				}
			}
			if got := b.lease(2); len(got) != 1 || got[0].ID != next.ID {
				t.Errorf("leased after the unblock: %v", got)
			}
		default:
			if len(again) != 1 || again[0].ID != next.ID {
				t.Errorf("the key did not go on: %v", again)
			}
		}
	}
	b := newBench(t, Config{}, Policy{})
	if _, err := b.box.Resolve(t.Context(), Scope{}, []int64{1}, 0, ann); !errors.Is(err, ErrInvalid) {
		t.Errorf("no resolution: %v", err)
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	b.enqueue(effect("k"))
	lanes := LanePattern{Consumer: "wallets", Target: Any, Kind: "charge"}
	since, err := b.box.Pause(t.Context(), Scope{}, lanes, PauseCancel, ann)
	if err != nil || time.Since(since) > time.Minute {
		t.Fatal(since, err)
	}
	if got := b.lease(1); len(got) != 0 {
		t.Errorf("leased from a paused lane: %v", got)
	}
	pauses, err := b.box.Pauses(t.Context(), Scope{})
	if err != nil || len(pauses) != 1 || pauses[0] != (Pause{Lanes: lanes, Mode: PauseCancel, By: ann, PausedAt: since}) {
		t.Errorf("pauses %+v, %v", pauses, err)
	}
	if pauses, err := b.box.Pauses(t.Context(), Tenants("acme")); err != nil || len(pauses) != 0 {
		t.Errorf("another tenant's pauses %+v, %v", pauses, err)
	}
	for _, want := range []bool{true, false} {
		if lifted, err := b.box.Resume(t.Context(), Scope{}, lanes, ann); err != nil || lifted != want {
			t.Errorf("resumed: %t, %v", lifted, err)
		}
	}
	if got := b.lease(1); len(got) != 1 {
		t.Errorf("leased %v", got)
	}
	calls := b.calls()
	for name, try := range map[string]func() error{
		"all tenants in the scope of one": func() error { _, err := b.box.Pause(t.Context(), Scope{}, Everything, 0, ann); return err },
		"another tenant": func() error {
			_, err := b.box.Resume(t.Context(), Tenants("acme"), lanes, ann)
			return err
		},
		"an empty name": func() error { _, err := b.box.Pause(t.Context(), AllTenants, LanePattern{}, 0, ann); return err },
		"no mode":       func() error { _, err := b.box.Pause(t.Context(), AllTenants, Everything, 7, ann); return err },
		"no actor": func() error {
			_, err := b.box.Pause(t.Context(), AllTenants, Everything, 0, By{Reason: "r"})
			return err
		},
	} {
		if err := try(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(*calls) != 0 {
		t.Errorf("sent %v", *calls)
	}
}

func TestReleaseWorkerTakesItsLeases(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	gone, err := b.box.RegisterWorker(t.Context(), "pod-0", " host \x00")
	if err != nil {
		t.Fatal(err)
	}
	alive, err := b.box.RegisterWorker(t.Context(), "pod-1", strings.Repeat("h", 300))
	if err != nil {
		t.Fatal(err)
	}
	b.enqueue(effect("a"), effect("b"), effect("c"))
	leaseAs := func(worker int64) []Message {
		request := LeaseRequest{Worker: worker, Kinds: []string{"charge"}, Limit: 2, For: time.Minute}
		messages, err := b.box.Lease(t.Context(), b.consumer, request)
		if err != nil {
			t.Fatal(err)
		}
		return messages
	}
	held := leaseAs(gone)
	kept := leaseAs(alive)
	if n, err := b.box.ReleaseWorker(t.Context(), Scope{}, "pod-0", ann); err != nil || n != 2 {
		t.Errorf("released %d, %v", n, err)
	}
	if got := b.settle(held[0], Delivered()); got.Status != StaleLease {
		t.Errorf("the worker that was gone: %+v", got)
	}
	if got := b.settle(kept[0], Delivered()); got.Status != Acknowledged {
		t.Errorf("the other: %+v", got)
	}
	if got := b.show(held[0].ID); got.Attempt != 1 || got.State != StatePending {
		t.Errorf("released as %+v", got)
	}
	if got := b.show(kept[0].ID).Worker; got != "pod-1" {
		t.Errorf("settled by %q", got)
	}
	workers := b.store.Dump().Workers
	if workers[0].Host != "host \uFFFD" || len(workers[1].Host) != 255 {
		t.Errorf("hosts %+v", workers)
	}
	if known, err := b.box.TouchWorkers(t.Context(), []int64{gone, 1 << 60}); err != nil || !slices.Equal(known, []bool{true, false}) {
		t.Errorf("touched: %v, %v", known, err)
	}
	b.store.Age(time.Hour)
	if n, err := b.box.PurgeWorkers(t.Context(), time.Minute, 10); err != nil || n != 2 {
		t.Errorf("forgot %d, %v", n, err)
	}
	if known, err := b.box.TouchWorkers(t.Context(), []int64{gone}); err != nil || known[0] {
		t.Errorf("touched: %v, %v", known, err)
	}
}
