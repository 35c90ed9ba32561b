package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
)

// refused says that err is outbox.ErrInvalid of the fields.
func refused(t *testing.T, row string, err error, fields ...string) {
	t.Helper()
	if !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("%s: %v", row, err)
		return
	}
	for _, field := range fields {
		if !strings.Contains(err.Error(), field+" ") {
			t.Errorf("%s: %v, want a problem of %s", row, err, field)
		}
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	_, err := ledger.New(nil, ledger.Config{Hold: -1, MaxResult: -1})
	refused(t, "all", err, "box", "Hold", "MaxResult")
	for row, config := range map[string]ledger.Config{
		"short": {Hold: time.Second - 1}, "long": {Hold: 24*time.Hour + 1}, "large": {MaxResult: 1<<20 + 1},
	} {
		_, err := newLedger(memdb.New(memdb.Config{}), config)
		refused(t, row, err)
	}
	l, err := newLedger(memdb.New(memdb.Config{}), ledger.Config{})
	if err != nil || l.Config() != (ledger.Config{Hold: time.Minute, MaxResult: 64 << 10}) {
		t.Errorf("%+v, %v", l.Config(), err)
	}
}

// What is wrong is told by its field before anything is sent, and the caller's transaction can go on.
// Shows: S4.28
func TestBadInput(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	r := newRig(t, store, "", ledger.Config{MaxResult: 8})
	claim := r.must(r.Claim, request("held"), ledger.Claimed).Claim
	sent := 0
	tx := store.Begin()
	store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error {
		sent++
		return nil
	}})
	for row, bad := range map[string]struct {
		change func(*ledger.Request)
		field  string
	}{
		"blank tenant":    {func(r *ledger.Request) { r.Tenant = " " }, "Tenant"},
		"any tenant":      {func(r *ledger.Request) { r.Tenant = "*" }, "Tenant"},
		"long tenant":     {func(r *ledger.Request) { r.Tenant = strings.Repeat("t", 129) }, "Tenant"},
		"no scope":        {func(r *ledger.Request) { r.Scope = "" }, "Scope"},
		"blank scope":     {func(r *ledger.Request) { r.Scope = "\t" }, "Scope"},
		"long scope":      {func(r *ledger.Request) { r.Scope = strings.Repeat("s", 129) }, "Scope"},
		"no key":          {func(r *ledger.Request) { r.Key = "" }, "Key"},
		"blank key":       {func(r *ledger.Request) { r.Key = "\u2003" }, "Key"},
		"long key":        {func(r *ledger.Request) { r.Key = strings.Repeat("k", 256) }, "Key"},
		"NUL in the key":  {func(r *ledger.Request) { r.Key = "k\x00" }, "Key"},
		"key not UTF-8":   {func(r *ledger.Request) { r.Key = "k\xff" }, "Key"},
		"no digest":       {func(r *ledger.Request) { r.Digest = [32]byte{} }, "Digest"},
		"scope not UTF-8": {func(r *ledger.Request) { r.Scope = "\xff" }, "Scope"},
	} {
		k := request("k")
		bad.change(&k)
		for _, do := range []verb{r.Claim, r.Take} {
			result, err := do(t.Context(), tx, k)
			refused(t, row, err, bad.field)
			if result.Status != "" {
				t.Errorf("%s: %+v", row, result)
			}
		}
		if bad.field != "Digest" {
			_, err := r.Find(t.Context(), k.Tenant, k.Scope, k.Key)
			refused(t, row, err, bad.field)
		}
	}
	byHand := ledger.Claim{Tenant: "acme", Scope: "payments", Key: "held", Epoch: 1}
	refused(t, "by hand", r.Complete(t.Context(), tx, byHand, nil), "claim")
	refused(t, "zero", r.Fail(t.Context(), tx, ledger.Claim{}, "why"), "claim", "Scope", "Key")
	refused(t, "large result", r.Complete(t.Context(), tx, claim, make([]byte, 9)), "result")
	refused(t, "no reason", r.Fail(t.Context(), tx, claim, ""), "reason")
	refused(t, "blank reason", r.Reject(t.Context(), tx, claim, " \n"), "reason")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for row, err := range map[string]error{
		"claim": second(r.Claim(over, tx, request("k"))), "take": second(r.Take(over, tx, request("k"))), "fail": r.Fail(over, tx, claim, "why"),
		"find": second(r.Find(over, "acme", "payments", "k")),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s under a context that is over: %v", row, err)
		}
	}
	for row, err := range map[string]error{
		"claim": second(r.Claim(t.Context(), nil, request("k"))), "complete": r.Complete(t.Context(), nil, claim, nil),
	} {
		if !errors.Is(err, db.ErrForeignTx) {
			t.Errorf("%s without a transaction: %v", row, err)
		}
	}
	if sent != 0 {
		t.Errorf("%d statements were sent", sent)
	}
	store.Hook(memdb.Hook{})
	if err := errors.Join(r.Complete(t.Context(), tx, claim, make([]byte, 8)), tx.Commit()); err != nil {
		t.Error(err)
	}
	r.must(r.Claim, request("held"), ledger.Duplicate)
}

func second[A any](_ A, err error) error { return err }

// Whatever the text of a reason, it is recorded on every driver.
func TestAnyReason(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		for _, reason := range []string{"\x00", "\xff\xfe", strings.Repeat("x", 1<<20), "a\x1b[31mb", strings.Repeat("日", 2000)} {
			claim := r.must(r.Claim, request("k"), ledger.Claimed).Claim
			if err := r.in(func(tx db.Tx) error { return r.Fail(r.Context(), tx, claim, reason) }); err != nil {
				r.Errorf("%.10q: %v", reason, err)
			}
			if s := r.standing(request("k")); s.State != ledger.StateFailed || s.Reason == "" || len(s.Reason) > 4<<10 {
				r.Errorf("%.10q: %s %.20q", reason, s.State, s.Reason)
			}
		}
	})
}
