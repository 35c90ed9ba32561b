package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
)

var errDown = errors.New("down")

// Shows: S1.19 S1.21 S1.41 S3.10
func TestSettleRecordsEachOutcome(t *testing.T) {
	t.Parallel()
	policy := Policy{MaxAttempts: 2, InitialDelay: time.Minute, Jitter: NoJitter}
	for name, test := range map[string]struct {
		outcome Outcome
		want    Result
		state   State
	}{
		"delivered": {DeliveredWith("receipt 7"), Result{Status: Acknowledged, Attempt: 1}, StateDelivered},
		"retry":     {Failed(errDown), Result{Status: RetryScheduled, Attempt: 1, Delay: time.Minute, Reason: "down"}, StatePending},
		"unspent":   {Failed(Unavailable(errDown)), Result{Status: RetryScheduled, Attempt: 0, Delay: time.Minute, Reason: "down"}, StatePending},
		"permanent": {Failed(Permanent(errDown)), Result{Status: DeadLettered, Attempt: 1, Cause: CausePermanent, Reason: "down"}, StateDead},
		"moot":      {Failed(Moot(errDown)), Result{Status: DeadLettered, Attempt: 1, Cause: CauseMoot, Reason: "down"}, StateDead},
		"parked":    {Failed(Unknown(errDown)), Result{Status: Parked, Attempt: 1, Reason: "down"}, StateParked},
	} {
		b := newBench(t, Config{}, policy)
		m := b.leaseOne("k")
		if got := b.settle(m, test.outcome); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		shown := b.show(m.ID)
		if shown.State != test.state || shown.Reason != test.want.Reason || shown.Cause != test.want.Cause || shown.Attempt != test.want.Attempt {
			t.Errorf("%s: stored %+v", name, shown)
		}
		if name == "delivered" && shown.Result != "receipt 7" {
			t.Errorf("result %q", shown.Result)
		}
		// B18: a second settle of any outcome changes nothing; of the same one it says that it stands.
		if got := b.settle(m, test.outcome); got.Status != StaleLease || !got.Recorded {
			t.Errorf("%s again: %+v", name, got)
		}
		for _, other := range []Outcome{Delivered(), Failed(errDown), Failed(Permanent(errDown)), Failed(Unknown(errDown))} {
			same := other.Verdict() == test.outcome.Verdict()
			if got := b.settle(m, other); got.Status != StaleLease || got.Recorded != same {
				t.Errorf("%s, then %s: %+v", name, other.Verdict(), got)
			}
		}
		if again := b.show(m.ID); again.State != test.state || again.Epoch != m.Epoch {
			t.Errorf("%s: a stale settle changed %+v", name, again)
		}
	}
}

func TestSettleDropsDelivered(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{DropDelivered: true})
	m := b.leaseOne("k")
	if got := b.settle(m, Delivered()); got.Status != Acknowledged {
		t.Errorf("got %+v", got)
	}
	if _, err := b.box.Show(t.Context(), AllTenants, m.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the message is still there: %v", err)
	}
	if got := b.settle(m, Delivered()); got.Status != StaleLease || got.Recorded {
		t.Errorf("again: %+v", got)
	}
	if got := b.enqueue(effect("k"))[0]; got.Status != Recorded {
		t.Errorf("the key is not free: %+v", got)
	}
}

// C17: each boundary is decided in one place. An attempt at the limit is spent at the settle as at the lease; an age at its limit is too
// old at the retry as at the lease; a lease at its end is over.
// Shows: S1.26
func TestC17Boundaries(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{MaxAttempts: 1, Jitter: NoJitter, MaxAge: time.Hour})
	if got := b.settle(b.leaseOne("spent"), Failed(errDown)); got.Status != DeadLettered || got.Cause != CauseAttempts {
		t.Errorf("attempt 1 of 1: %+v", got)
	}
	m := b.leaseOne("old")
	b.store.Age(time.Hour)
	if got := b.settle(m, Failed(Unavailable(errDown))); got.Status != StaleLease {
		t.Errorf("a lease that is over: %+v", got)
	}

	b = newBench(t, Config{}, Policy{MaxAge: time.Hour})
	b.enqueue(effect("old"))
	b.store.Age(time.Hour - time.Second)
	m = b.lease(1)[0]
	b.store.Age(time.Second)
	got := b.settle(m, Failed(errDown))
	if got.Status != DeadLettered || got.Cause != CauseAge || got.Reason != "too old; last error: down" {
		t.Errorf("an age at its limit: %+v", got)
	}
	if again := b.settle(m, Failed(errDown)); !again.Recorded {
		t.Errorf("again: %+v", again)
	}

	lost := b.leaseOne("lost")
	b.store.Age(time.Hour)
	b.lease(1) // buries it, with the last error it knows: none
	if got := b.settle(lost, Failed(errDown)); got.Status != StaleLease || got.Recorded {
		t.Errorf("a settle after another worker buried the message: %+v", got)
	}
	// An age that a kind shortens.
	limited, err := b.consumer.WithMaxAges(map[string]time.Duration{"charge": time.Minute, "other": 0})
	if err != nil {
		t.Fatal(err)
	}
	b.enqueue(effect("young"))
	b.store.Age(time.Minute)
	messages, err := b.box.Lease(t.Context(), limited, LeaseRequest{Kinds: []string{"charge"}, Limit: 1, For: time.Second})
	if err != nil || len(messages) != 0 {
		t.Errorf("leased %v, %v", messages, err)
	}
}

// Shows: S1.28
func TestSettleAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		b := newBench(t, Config{}, Policy{AcceptLate: late})
		first := b.leaseOne("k")
		b.store.Age(time.Minute)
		if got := b.settle(first, Failed(errDown)); got.Status != StaleLease || got.Recorded {
			t.Errorf("late failure: %+v", got)
		}
		want := StaleLease
		if late {
			want = Acknowledged
		}
		if got := b.settle(first, Delivered()); got.Status != want {
			t.Errorf("AcceptLate %t: %+v", late, got)
		}
		if late {
			continue
		}
		// After the next lease it is always stale, also under the same epoch by another token.
		second := b.lease(1)[0]
		if !second.Unsure || second.Epoch != first.Epoch+1 {
			t.Errorf("second lease %+v", second)
		}
		forged := second
		forged.token = newToken()
		for _, m := range []Message{first, forged} {
			if got := b.settle(m, Delivered()); got.Status != StaleLease || got.Recorded {
				t.Errorf("stale: %+v", got)
			}
		}
		if got := b.settle(second, Delivered()); got.Status != Acknowledged {
			t.Errorf("the holder: %+v", got)
		}
		if got := b.settle(first, Delivered()); got.Status != StaleLease || got.Recorded {
			t.Errorf("what another lease recorded: %+v", got)
		}
	}
}

// The tenant scope, the consumer and the target are enforced at the settle too.
// Shows: S1.12 S4.21
func TestSettleOutOfScopeIsStale(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	m := b.leaseOne("k")
	other, err := b.box.Consumer("wallets", "elsewhere", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for name, settle := range map[string]func() (Result, error){
		"scope":    func() (Result, error) { return b.box.Settle(t.Context(), b.consumer, Tenants("acme"), m, Delivered()) },
		"consumer": func() (Result, error) { return b.box.Settle(t.Context(), other, AllTenants, m, Delivered()) },
	} {
		if got, err := settle(); err != nil || got.Status != StaleLease || got.Recorded {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got := b.settle(m, Delivered()); got.Status != Acknowledged {
		t.Errorf("the right one: %+v", got)
	}
}

func TestSettleManyKeepsInputOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 1200 {
		effects = append(effects, effect(fmt.Sprint(i)))
	}
	b.enqueue(effects...)
	messages := append(b.lease(1000), b.lease(1000)...)
	slices.Reverse(messages)
	outcomes := []Outcome{Delivered(), Failed(errDown), Failed(Permanent(errDown)), Failed(Unknown(errDown)), Failed(Unavailable(errDown))}
	wants := []Status{Acknowledged, RetryScheduled, DeadLettered, Parked, RetryScheduled}
	var settlings []Settling
	for i, m := range messages {
		settlings = append(settlings, Settling{Message: m, Outcome: outcomes[i%len(outcomes)]})
	}
	settlings = append(settlings, settlings[0]) // the same lease twice: the first wins
	results, err := b.box.SettleMany(t.Context(), b.consumer, AllTenants, settlings)
	if err != nil || len(messages) != 1200 {
		t.Fatal(len(messages), err)
	}
	for i := range messages {
		if results[i].Status != wants[i%len(wants)] {
			t.Fatalf("settling %d: %+v, want %s", i, results[i], wants[i%len(wants)])
		}
	}
	if last := results[1200]; last.Status != StaleLease || !last.Recorded {
		t.Errorf("the same lease again: %+v", last)
	}
}

// An answer that does not come back leaves its own statement unknown and no other; a repeated settle finds what was recorded.
// Shows: S1.18
func TestSettleUnknown(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"SettleDelivered", "FindFates"} {
		b := newBench(t, Config{}, Policy{})
		b.enqueue(effect("a"), effect("b"), effect("c"), effect("stale"))
		messages := b.lease(4)
		stale := messages[3]
		b.settle(stale, Delivered())
		b.store.Hook(memdb.Hook{After: func(_ context.Context, call memdb.Call, err error) error {
			if call.Operation == operation {
				return context.DeadlineExceeded
			}
			return err
		}})
		settlings := []Settling{
			{Message: messages[0], Outcome: Delivered()},
			{Message: messages[1], Outcome: Failed(errDown)},
			{Message: messages[2], Outcome: Delivered()},
			{Message: stale, Outcome: Delivered()},
		}
		results, err := b.box.SettleMany(t.Context(), b.consumer, AllTenants, settlings)
		var unknown *SettleUnknownError
		if !errors.As(err, &unknown) || !errors.Is(err, context.DeadlineExceeded) || unknown.Outcome.Verdict() != VerdictDelivered {
			t.Fatalf("%s: %v", operation, err)
		}
		want := []Status{SettleUnknown, RetryScheduled, SettleUnknown, SettleUnknown}
		others := 2
		if operation == "FindFates" {
			want, others = []Status{Acknowledged, RetryScheduled, Acknowledged, SettleUnknown}, 0
		}
		for i, result := range results {
			if result.Status != want[i] {
				t.Errorf("%s, settling %d: %+v, want %s", operation, i, result, want[i])
			}
		}
		if unknown.Others != others || strings.Contains(err.Error(), "payload") {
			t.Errorf("%s: %v", operation, err)
		}
		b.store.Hook(memdb.Hook{})
		for i, result := range results {
			if result.Status != SettleUnknown {
				continue
			}
			if again := b.settle(settlings[i].Message, settlings[i].Outcome); again.Status != StaleLease || !again.Recorded {
				t.Errorf("%s, settling %d again: %+v", operation, i, again)
			}
		}
	}
}

// Shows: S1.22
func TestSettleRefusesBeforeAnyStatement(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	m := b.leaseOne("k")
	calls := b.calls()
	for name, test := range map[string]struct {
		message Message
		outcome Outcome
		field   string
	}{
		"made by hand": {Message{ID: m.ID, Consumer: "wallets", Target: "ledger"}, Delivered(), "Message"},
		"no outcome":   {m, Outcome{}, "Outcome"},
		"nil error":    {m, Failed(nil), "Reason"},
		"blank":        {m, Failed(errors.New(" \n")), "Reason"},
	} {
		_, err := b.box.Settle(t.Context(), b.consumer, AllTenants, test.message, test.outcome)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Field != test.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.box.Settle(t.Context(), nil, Tenants(), m, Delivered()); !errors.Is(err, ErrInvalid) {
		t.Errorf("no consumer: %v", err)
	}
	if len(*calls) != 0 {
		t.Errorf("sent %v", *calls)
	}
}

// Shows: S2.8
func TestObserverHearsOfSettles(t *testing.T) {
	t.Parallel()
	var heard []string
	log := &recorder{}
	observer := &Observer{
		Leased: func(_ context.Context, messages []Message) {
			heard = append(heard, fmt.Sprint("leased ", len(messages)))
		},
		Settled: func(_ context.Context, _ Message, o Outcome, r Result) {
			heard = append(heard, fmt.Sprint(o.Verdict(), " ", r.Status))
		},
		Retried: func(_ context.Context, _ Message, _ Outcome, delay time.Duration) {
			heard = append(heard, fmt.Sprint("retried ", delay))
		},
		Dead:      func(_ context.Context, burial Burial) { heard = append(heard, fmt.Sprint("dead ", burial.Cause)) },
		LeaseLost: func(context.Context, Message) { panic("an observer must not break the box") },
	}
	b := newBench(t, Config{Observer: observer, Logger: log.logger()}, Policy{MaxAttempts: 2, Jitter: NoJitter, InitialDelay: time.Second})
	m := b.leaseOne("k")
	b.settle(m, Failed(errDown))
	b.store.Age(2 * time.Second)
	b.settle(b.lease(1)[0], Failed(errDown))
	b.settle(m, Failed(errDown))
	want := []string{"leased 1", "failed retry_scheduled", "retried 1s", "leased 1", "failed dead_lettered", "dead attempts", "failed stale_lease"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q", heard)
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "cause=attempts") ||
		strings.Contains(lines[0], "payload") {
		t.Errorf("logged %q", lines)
	}
}

// A death whose answer was lost is told when the same settle, sent again, finds it recorded.
func TestDeathIsToldAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		operation string
		outcome   Outcome
		aged      time.Duration
		want      string
	}{
		"permanent": {"SettleDead", Failed(Permanent(errDown)), 0, "dead permanent: down"},
		"aged":      {"SettleRetry", Failed(errDown), time.Second, "dead age: too old; last error: down"},
		"retried":   {"SettleRetry", Failed(errDown), 0, ""},
	} {
		var heard string
		log := &recorder{}
		observer := &Observer{Dead: func(_ context.Context, burial Burial) {
			heard += fmt.Sprint("dead ", burial.Cause, ": ", burial.Reason)
		}}
		b := newBench(t, Config{Observer: observer, Logger: log.logger()}, Policy{MaxAge: time.Hour})
		b.enqueue(effect("k"))
		b.store.Age(time.Hour - time.Second)
		m := b.lease(1)[0]
		b.store.Age(test.aged)
		b.store.Hook(memdb.Hook{After: func(_ context.Context, call memdb.Call, err error) error {
			if call.Operation == test.operation {
				return errors.Join(err, context.DeadlineExceeded)
			}
			return err
		}})
		if _, err := b.box.Settle(t.Context(), b.consumer, AllTenants, m, test.outcome); err == nil || heard != "" {
			t.Errorf("%s: %v, heard %q", name, err, heard)
		}
		b.store.Hook(memdb.Hook{})
		if again := b.settle(m, test.outcome); !again.Recorded || heard != test.want || len(log.lines()) != min(len(test.want), 1) {
			t.Errorf("%s again: %+v, heard %q, logged %q", name, again, heard, log.lines())
		}
	}
}
