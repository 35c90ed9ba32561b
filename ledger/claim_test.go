package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
)

// Shows: S4.1 S4.3 S4.13
func TestClaim(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		k := request("k")
		claim := r.must(r.Claim, k, ledger.Claimed).Claim
		if claim.Epoch != 1 || claim.Key != "k" || claim.Tenant != "acme" || claim.Scope != "payments" || claim.Until.Location() != time.UTC {
			r.Errorf("%+v", claim)
		}
		again := r.must(r.Take, k, ledger.InProgress)
		if again.State != ledger.StateHeld || again.Epoch != 1 || again.Over || !again.Until.Equal(claim.Until) || again.Until.Sub(again.ClaimedAt).Round(100*time.Millisecond) != time.Second {
			r.Errorf("%+v", again)
		}
		conflict, err := r.try(r.Claim, changed(k))
		var named *ledger.ConflictError
		if !errors.As(err, &named) || *named != (ledger.ConflictError{"acme", "payments", "k", ledger.StateHeld, 1}) {
			r.Errorf("other content: %v", err)
		}
		if conflict.Status != ledger.Conflicted || conflict.Digest != [32]byte{} {
			r.Errorf("other content: %+v", conflict)
		}
		for name, other := range map[string]ledger.Request{
			"tenant": {Scope: "payments", Key: "k", Digest: k.Digest}, "scope": {Tenant: "acme", Scope: "refunds", Key: "k", Digest: k.Digest},
			"content of a key of its own": {Tenant: "acme", Scope: "payments", Key: "K", Digest: k.Digest},
		} {
			if result := r.must(r.Claim, other, ledger.Claimed); result.Claim.Epoch != 1 {
				r.Errorf("another %s: %+v", name, result)
			}
		}
		if err := r.in(func(tx db.Tx) error { return r.Complete(r.Context(), tx, claim, []byte("r\x00\xff")) }); err != nil {
			r.Error(err)
		}
		done := r.must(r.Take, k, ledger.Duplicate)
		if done.State != ledger.StateCompleted || string(done.Result) != "r\x00\xff" || done.Digest != k.Digest || !done.Until.IsZero() || done.EndedAt.Before(done.ClaimedAt) || done.Rejected() {
			r.Errorf("%+v", done)
		}
		if found := r.standing(k); fmt.Sprint(found) != fmt.Sprint(done.Standing) {
			r.Errorf("found %+v, want %+v", found, done.Standing)
		}
		r.must(r.Take, changed(k), ledger.Conflicted)
		if _, err := r.Find(r.Context(), "", "refunds", "k"); !errors.Is(err, ledger.ErrNotFound) {
			r.Errorf("nobody's: %v", err)
		}
	})
}

// Shows: S4.1 S4.28
func TestEnds(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		k := request("k")
		stale := func(claim ledger.Claim) {
			r.Helper()
			for name, end := range map[string]func(tx db.Tx) error{
				"complete": func(tx db.Tx) error { return r.Complete(r.Context(), tx, claim, nil) },
				"fail":     func(tx db.Tx) error { return r.Fail(r.Context(), tx, claim, "late") },
				"reject":   func(tx db.Tx) error { return r.Reject(r.Context(), tx, claim, "late") },
			} {
				if err := r.in(end); !errors.Is(err, ledger.ErrStale) {
					r.Errorf("%s: %v", name, err)
				}
			}
		}
		first := r.must(r.Claim, k, ledger.Claimed).Claim
		if err := r.in(func(tx db.Tx) error { return r.Fail(r.Context(), tx, first, " no\x00connection ") }); err != nil {
			r.Error(err)
		}
		if s := r.standing(k); s.State != ledger.StateFailed || s.Reason != "no\uFFFDconnection" || s.EndedAt.IsZero() {
			r.Errorf("%+v", s)
		}
		stale(first)
		r.must(r.Claim, changed(k), ledger.Conflicted)
		second := r.must(r.Claim, k, ledger.Claimed).Claim
		if second.Epoch != 2 {
			r.Errorf("%+v", second)
		}
		stale(first)
		if err := r.in(func(tx db.Tx) error { return r.Reject(r.Context(), tx, second, strings.Repeat("ä", 4<<10)) }); err != nil {
			r.Error(err)
		}
		stale(second)
		rejected := r.must(r.Claim, k, ledger.Duplicate)
		if !rejected.Rejected() || rejected.Epoch != 2 || rejected.Reason != strings.Repeat("ä", 2<<10) {
			r.Errorf("%+v", rejected)
		}
	})
}

// What a claim and its work wrote is there together or not at all, and who claims the same key meanwhile waits.
// Shows: S4.13
func TestClaimInOneTransaction(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		k, failure := request("k"), errors.New("mine")
		work := func(end error) error {
			return r.in(func(tx db.Tx) error {
				result, err := r.Claim(r.Context(), tx, k)
				if err != nil || result.Status != ledger.Claimed {
					return fmt.Errorf("%s, %w", result.Status, err)
				}
				return errors.Join(r.Complete(r.Context(), tx, result.Claim, []byte("done")), end)
			})
		}
		if err := work(failure); !errors.Is(err, failure) {
			r.Error(err)
		}
		if _, err := r.Find(r.Context(), k.Tenant, k.Scope, k.Key); !errors.Is(err, ledger.ErrNotFound) {
			r.Errorf("rolled back: %v", err)
		}
		second := make(chan ledger.Result, 1)
		err := r.in(func(tx db.Tx) error {
			result, err := r.Claim(r.Context(), tx, k)
			if err != nil {
				return err
			}
			go func() {
				result, err := r.try(r.Claim, k)
				if err != nil {
					r.Error(err)
				}
				second <- result
			}()
			return r.Complete(r.Context(), tx, result.Claim, []byte("done"))
		})
		if err != nil {
			r.Error(err)
		}
		if result := <-second; result.Status != ledger.Duplicate || string(result.Result) != "done" {
			r.Errorf("%+v", result)
		}
	})
}

// A key whose claim is purged at each wrong moment is not tried for ever.
func TestKeyThatComesAndGoes(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	r := newRig(t, store, "", ledger.Config{})
	k := request("k")
	// Each time somebody has found the key taken, its claim is purged, and all but the last time claimed again at once.
	for purges, want := range map[int]error{2: nil, 3: db.ErrRetry} {
		holder := r.must(r.Claim, k, ledger.Claimed).Claim
		comeAndGo := func() {
			store.Hook(memdb.Hook{})
			if err := r.in(func(tx db.Tx) error { return r.Complete(r.Context(), tx, holder, nil) }); err != nil {
				t.Error(err)
			}
			store.Age(time.Hour)
			if _, err := store.PurgeClaims(t.Context(), db.PurgeClaimsParams{SchemaName: store.Schema(), Keep: 1, MaxRows: 10, AllTenants: true}); err != nil {
				t.Error(err)
			}
		}
		left := purges
		var hook memdb.Hook
		hook.Before = func(_ context.Context, call memdb.Call) error {
			switch {
			case call.Operation == "FindClaims":
				comeAndGo()
				left--
			case call.Operation == "Claim" && left < purges && left > 0:
				store.Hook(memdb.Hook{})
				holder = r.must(r.Claim, k, ledger.Claimed).Claim
			default:
				return nil
			}
			store.Hook(hook)
			return nil
		}
		store.Hook(hook)
		result, err := r.try(r.Claim, k)
		store.Hook(memdb.Hook{})
		if !errors.Is(err, want) || (want == nil) != (result.Status == ledger.Claimed) {
			t.Errorf("after %d purges: %+v, %v", purges, result, err)
		}
		if want == nil {
			holder = result.Claim
			comeAndGo()
		}
	}
}

func TestNothingOfATokenIsPrinted(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}), "", ledger.Config{})
	result := r.must(r.Claim, request("k"), ledger.Claimed)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("claimed", "claim", result.Claim)
	for _, text := range []string{fmt.Sprintf("%v", result), fmt.Sprintf("%+v", result), fmt.Sprintf("%#v", result), logged.String()} {
		if strings.Contains(text, "token") || !strings.Contains(text, "epoch") || !strings.Contains(text, "k") {
			t.Errorf("printed %s", text)
		}
	}
}

func TestDigestOf(t *testing.T) {
	t.Parallel()
	a, b := []byte("a"), []byte("b")
	seen := map[[32]byte]string{}
	for name, parts := range map[string][][]byte{
		"none": {}, "empty": {nil}, "a": {a}, "a b": {a, b}, "ab": {[]byte("ab")}, "b a": {b, a}, "a and empty": {a, nil},
	} {
		digest := ledger.DigestOf(parts...)
		if other, taken := seen[digest]; taken {
			t.Errorf("%q has the digest of %q", name, other)
		}
		seen[digest] = name
		if digest != ledger.DigestOf(parts...) {
			t.Errorf("%q has two digests", name)
		}
	}
}

func TestReasonsAreRedacted(t *testing.T) {
	t.Parallel()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "…") }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(box, ledger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, Ledger: l}
	claim := r.must(r.Claim, request("k"), ledger.Claimed).Claim
	if err := r.in(func(tx db.Tx) error { return r.Fail(t.Context(), tx, claim, "a secret") }); err != nil {
		t.Error(err)
	}
	if s := r.standing(request("k")); s.Reason != "a …" {
		t.Errorf("%q", s.Reason)
	}
}
