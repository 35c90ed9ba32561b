package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

// Shows: S1.2
func TestEnqueueStoresWhatItWasGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	due := time.Now().Add(time.Hour)
	given := Effect{
		Tenant: "acme", Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "order-1", OrderKey: "account-1",
		Payload: []byte{0, 0xff, 'x'}, Metadata: map[string]string{"b": "2"}, Priority: -7, DueAt: due, MaxAge: time.Minute,
		SourcePosition: 42, SourceEventID: "event",
	}
	receipt := b.enqueue(given)[0]
	if receipt.Status != Recorded || receipt.State != StatePending || receipt.ID == 0 {
		t.Fatalf("receipt %+v", receipt)
	}
	got := b.show(receipt.ID)
	sum := digest(given)
	if got.Tenant != "acme" || got.Key != "order-1" || got.OrderKey != "account-1" || got.Priority != -7 || got.State != StatePending ||
		string(got.Payload) != "\x00\xffx" || got.Metadata["b"] != "2" || got.MaxAge != time.Minute ||
		!got.DueAt.Equal(due.Truncate(time.Microsecond)) || !got.ExpiresAt.Equal(got.DueAt.Add(time.Minute)) ||
		got.SourcePosition != 42 || got.SourceEventID != "event" || string(got.Digest) != string(sum[:]) {
		t.Errorf("stored %+v", got)
	}
}

func TestEnqueueTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	now := time.Now()
	past, future, delayed, aged, ageless := effect("past"), effect("future"), effect("delayed"), effect("aged"), effect("ageless")
	past.DueAt = time.Date(2001, 1, 1, 0, 0, 0, 0, time.Local)
	future.DueAt = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	delayed.Delay = time.Hour
	aged.MaxAge = 1 // a nanosecond is no "none"
	ageless.MaxAge = NoMaxAge
	receipts := b.enqueue(past, future, delayed, aged, ageless)
	near := func(name string, got, want time.Time) {
		if d := got.Sub(want); d < -time.Minute || d > time.Minute {
			t.Errorf("%s: %v, want about %v", name, got, want)
		}
	}
	near("a past due time", b.show(receipts[0].ID).DueAt, now)
	near("the last due time", b.show(receipts[1].ID).DueAt, future.DueAt)
	near("a delay", b.show(receipts[2].ID).DueAt, now.Add(time.Hour))
	near("the default age", b.show(receipts[0].ID).ExpiresAt, now.Add(24*time.Hour))
	if got := b.show(receipts[3].ID); got.MaxAge != time.Microsecond {
		t.Errorf("an age of a nanosecond became %v", got.MaxAge)
	}
	if got := b.show(receipts[4].ID); got.MaxAge != NoMaxAge || !got.ExpiresAt.IsZero() {
		t.Errorf("no age became %v, until %v", got.MaxAge, got.ExpiresAt)
	}
}

// C25: the same key with other content was thrown away with a success answer.
func TestC25SameKeyOtherContent(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	first := b.enqueue(effect("k"))[0]
	otherPayload, otherKind := effect("k"), effect("k")
	otherPayload.Payload = []byte("secret of another caller")
	otherKind.Kind = "refund"
	for _, conflicting := range []Effect{otherPayload, otherKind} {
		tx := b.store.Begin()
		receipt, err := b.box.Enqueue(t.Context(), tx, conflicting)
		var conflict *KeyConflictError
		if !errors.Is(err, ErrKeyConflict) || !errors.As(err, &conflict) || receipt.Status != Conflicted || receipt.ID != first.ID {
			t.Fatalf("answered %+v, %v", receipt, err)
		}
		want := Conflict{Consumer: "wallets", Key: "k", ID: first.ID, State: StatePending}
		if len(conflict.Conflicts) != 1 || conflict.Conflicts[0] != want {
			t.Errorf("conflicts %+v", conflict.Conflicts)
		}
		if strings.Contains(err.Error(), "payload of k") {
			t.Errorf("the error tells the content: %v", err)
		}
		if _, err := b.box.Enqueue(t.Context(), tx, effect("after "+conflicting.Kind)); err != nil {
			t.Errorf("the transaction cannot go on: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
	// The scope of a key is (tenant, consumer).
	otherTenant, otherConsumer := effect("k"), effect("k")
	otherTenant.Tenant, otherConsumer.Consumer = "acme", "mails"
	for _, receipt := range b.enqueue(otherTenant, otherConsumer) {
		if receipt.Status != Recorded {
			t.Errorf("another scope: %+v", receipt)
		}
	}
}

// C28: a duplicate surfaced as a low-level error, or as a success that did not say that nothing was stored.
func TestC28DuplicateSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	first := b.enqueue(effect("k"))[0]
	expect := func(state State) {
		t.Helper()
		if got := b.enqueue(effect("k"))[0]; got.Status != Duplicate || got.ID != first.ID || got.State != state {
			t.Errorf("got %+v, want a duplicate of %d in state %s", got, first.ID, state)
		}
	}
	expect(StatePending)
	message := b.lease(1)[0]
	expect(StateLeased)
	b.settle(message, Delivered())
	expect(StateDelivered)
	b.store.Age(time.Hour)
	if _, err := b.box.PurgeDelivered(t.Context(), AllTenants, Cursor{}, time.Minute, 10); err != nil {
		t.Fatal(err)
	}
	if got := b.enqueue(effect("k"))[0]; got.Status != Recorded {
		t.Errorf("after the purge the key is not free: %+v", got)
	}
}

// B16: of one key in a batch the first is stored, and what becomes of the others does not depend on chance.
func TestSameKeyTwiceInOneBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	other := effect("a")
	other.Payload = []byte("other")
	effects := []Effect{effect("b"), effect("a"), effect("a"), other, effect("c"), other}
	tx := b.store.Begin()
	receipts, err := b.box.EnqueueMany(t.Context(), tx, effects)
	var conflict *KeyConflictError
	if !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	var statuses []Status
	var conflicting []int
	for _, r := range receipts {
		statuses = append(statuses, r.Status)
	}
	for _, c := range conflict.Conflicts {
		conflicting = append(conflicting, c.Index)
	}
	if !slices.Equal(statuses, []Status{Recorded, Recorded, Duplicate, Conflicted, Recorded, Conflicted}) || !slices.Equal(conflicting, []int{3, 5}) {
		t.Errorf("statuses %v, conflicts at %v", statuses, conflicting)
	}
	if receipts[2].ID != receipts[1].ID || receipts[3].ID != receipts[1].ID || !(receipts[0].ID < receipts[1].ID && receipts[1].ID < receipts[4].ID) {
		t.Errorf("receipts %+v", receipts)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := len(b.store.Dump().Messages); got != 3 {
		t.Errorf("%d messages are stored", got)
	}
}

func TestEnqueueManyCutsStatements(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{MaxPayload: 1 << 20}, Policy{})
	var effects []Effect
	for i := range 2500 {
		effects = append(effects, effect(fmt.Sprint("small ", i)))
	}
	for i := range 6 {
		large := effect(fmt.Sprint("large ", i))
		large.Payload = make([]byte, 1<<20)
		effects = append(effects, large)
	}
	var sizes []int
	b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		if params, ok := call.Params.(db.EnqueueParams); ok {
			sizes = append(sizes, len(params.Keys))
		}
		return nil
	}})
	receipts := b.enqueue(effects...)
	if !slices.Equal(sizes, []int{1000, 1000, 503, 3}) {
		t.Errorf("statements of %v effects", sizes)
	}
	for i, r := range receipts {
		if r.Status != Recorded || i > 0 && r.ID <= receipts[i-1].ID {
			t.Fatalf("receipt %d is %+v", i, r)
		}
	}
}

func TestEnqueueValidatesAllBeforeAny(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	calls := b.calls()
	effects := make([]Effect, 1500)
	for i := range effects {
		effects[i] = effect(fmt.Sprint(i))
	}
	effects[7].Kind = ""
	effects[1400].Key, effects[1400].Delay = "\x00", -1
	tx := b.store.Begin()
	receipts, err := b.box.EnqueueMany(t.Context(), tx, effects)
	if receipts != nil || !errors.Is(err, ErrInvalid) || len(*calls) != 0 {
		t.Fatalf("answered %v, %v after %v", receipts, err, *calls)
	}
	const want = "outbox: enqueue: invalid: [7] Kind is blank; [1400] Key has a NUL at byte 0; [1400] Delay is negative: -1ns"
	if err.Error() != want {
		t.Errorf("error %q", err)
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Index != 7 || invalid.Field != "Kind" {
		t.Errorf("first problem %+v", invalid)
	}
}

// A purged key is taken for the first statement and gone for the second: the enqueue tries again, three times at most.
func TestEnqueueTriesAgain(t *testing.T) {
	t.Parallel()
	for gone, want := range map[int]int{1: 2, 2: 3, 3: 3} {
		store := &flickering{Store: memdb.New(memdb.Config{}), gone: gone}
		box, err := New(store, Config{})
		if err != nil {
			t.Fatal(err)
		}
		tx := store.Begin()
		receipt, err := box.Enqueue(t.Context(), tx, effect("k"))
		if store.enqueues != want {
			t.Errorf("gone %d times: enqueued %d times", gone, store.enqueues)
		}
		if gone < enqueueTries && (err != nil || receipt.Status != Recorded) || gone == enqueueTries && !errors.Is(err, db.ErrRetry) {
			t.Errorf("gone %d times: %+v, %v", gone, receipt, err)
		}
	}
}

// flickering pretends for some enqueues that the key is taken by a message that is gone a moment later.
type flickering struct {
	*memdb.Store
	gone, enqueues int
}

func (f *flickering) Enqueue(ctx context.Context, tx db.Tx, arg db.EnqueueParams) ([]db.EnqueueRow, error) {
	f.enqueues++
	if f.enqueues <= f.gone {
		return make([]db.EnqueueRow, len(arg.Keys)), nil
	}
	return f.Store.Enqueue(ctx, tx, arg)
}

// Shows: S3.2 S3.3
func TestSuppressedContextRecordsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	calls := b.calls()
	woken, stop := b.box.Woken()
	defer stop()
	ctx := WithSuppressed(t.Context())
	receipts, err := b.box.EnqueueMany(ctx, b.store.Begin(), []Effect{effect("a"), effect("b")})
	if err != nil || len(receipts) != 2 || receipts[0] != (Receipt{Status: Suppressed}) || len(*calls) != 0 {
		t.Errorf("answered %+v, %v after %v", receipts, err, *calls)
	}
	receipts.Committed()
	if len(woken) != 0 {
		t.Error("suppressed effects woke the senders")
	}
	if _, err := b.box.Enqueue(ctx, b.store.Begin(), Effect{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an invalid effect passed: %v", err)
	}
}

type gathering struct {
	*memdb.Tx
	ids []int64
}

func (g *gathering) Gather(ids []int64) { g.ids = append(g.ids, ids...) }

func TestGathererHearsOfStoredMessagesAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	b.enqueue(effect("a"))
	tx := &gathering{Tx: b.store.Begin()}
	box, err := New(&unwrapping{b.store}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := box.EnqueueMany(t.Context(), tx, []Effect{effect("a"), effect("b"), effect("c")})
	if err != nil || !slices.Equal(tx.ids, []int64{receipts[1].ID, receipts[2].ID}) {
		t.Errorf("gathered %v of %+v, %v", tx.ids, receipts, err)
	}
}

// unwrapping hands the store its own kind of transaction.
type unwrapping struct{ *memdb.Store }

func (u *unwrapping) Enqueue(ctx context.Context, tx db.Tx, arg db.EnqueueParams) ([]db.EnqueueRow, error) {
	return u.Store.Enqueue(ctx, tx.(*gathering).Tx, arg)
}

func (u *unwrapping) FindKeys(ctx context.Context, tx db.Tx, arg db.FindKeysParams) ([]db.FindKeysRow, error) {
	return u.Store.FindKeys(ctx, tx.(*gathering).Tx, arg)
}
