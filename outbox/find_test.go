package outbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fencepost-go/fencepost/db"
)

func TestFind(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	stored := b.enqueue(effect("stored"))[0]
	tx := b.store.Begin()
	own, err := b.box.Enqueue(t.Context(), tx, effect("own"))
	if err != nil {
		t.Fatal(err)
	}
	other, tenant := effect("own"), effect("stored")
	other.Payload, tenant.Tenant = []byte("other"), "acme"
	asked := []Effect{effect("stored"), effect("own"), other, effect("nothing"), tenant, {Consumer: "wallets", Key: "stored"}}
	calls := b.calls()
	receipts, err := b.box.Find(t.Context(), tx, asked)
	want := Receipts{
		{ID: stored.ID, Status: Duplicate, State: StatePending}, {ID: own.ID, Status: Duplicate, State: StatePending},
		{ID: own.ID, Status: Conflicted, State: StatePending}, {Status: NotFound}, {Status: NotFound},
		{ID: stored.ID, Status: Conflicted, State: StatePending},
	}
	if err != nil || fmt.Sprint(receipts) != fmt.Sprint(want) || len(*calls) != 1 {
		t.Errorf("found %+v, %v by %v", receipts, err, *calls)
	}
	if receipts, err := b.box.Find(t.Context(), tx, nil); err != nil || len(receipts) != 0 || len(*calls) != 1 {
		t.Errorf("of nothing: %+v, %v by %v", receipts, err, *calls)
	}
	if _, err := b.box.Find(t.Context(), tx, []Effect{effect("k"), {Key: "k"}}); !errors.Is(err, ErrInvalid) || len(*calls) != 1 {
		t.Errorf("no consumer: %v by %v", err, *calls)
	}
	if _, err := b.box.Find(t.Context(), nil, asked); !errors.Is(err, db.ErrForeignTx) {
		t.Errorf("no transaction: %v", err)
	}
	outside := b.store.Begin()
	if receipts, err := b.box.Find(t.Context(), outside, asked[1:2]); err != nil || receipts[0].Status != NotFound {
		t.Errorf("from outside: %+v, %v", receipts, err)
	}
	_ = outside.Rollback()
	if _, err := b.box.Find(t.Context(), outside, asked); err == nil {
		t.Error("found something in a transaction that is over")
	}
}

// Each statement asks for at most 1,000.
func TestFindMany(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var all []Effect
	for i := range 2500 {
		all = append(all, effect(fmt.Sprint(i)))
	}
	b.enqueue(all[1:]...)
	calls := b.calls()
	receipts, err := b.box.Find(t.Context(), b.store.Begin(), all)
	if err != nil || len(receipts) != 2500 || receipts[0].Status != NotFound || receipts[2499].Status != Duplicate || len(*calls) != 3 {
		t.Errorf("%d receipts, %v, by %v", len(receipts), err, *calls)
	}
}
