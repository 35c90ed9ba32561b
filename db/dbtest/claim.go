package dbtest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var claimTests = []test{
	{name: "a key is claimed once", run: claimsOnce},
	{name: "a claim ends with its result, which can be read back", run: claimCompletes},
	{name: "a failed claim is free for the same content only", run: claimFails},
	{name: "a claim that is over can be taken, and its old holder's end is stale", run: claimTaken},
	{name: "a claim that is over but nobody's else is still its holder's", run: claimLate},
	{name: "a receipt claims and ends at once", run: claimRecorded},
	{name: "tenants and scopes are apart", run: claimsApart},
	{name: "a claim rolled back was none", run: claimRolledBack},
	{name: "another that claims waits for the end of the transaction", run: claimWaits, sideBySide: true},
	{name: "one that finds the key taken holds up nobody", run: claimLeaves, sideBySide: true},
	{name: "of many claims one wins", run: claimsOneWinner},
	{name: "of many takes one wins", run: takesOneWinner},
	{name: "bounds refuse what Go should have", run: claimChecks},
}

var transactTests = []test{
	{name: "commits what its function did, or nothing", run: transacts},
	{name: "a panic rolls back", run: transactPanics},
}

func claimParams(key, digest string, token []byte) db.ClaimParams {
	return db.ClaimParams{Scope: "s", Key: key, Digest: digestOf(digest), Token: token, Hold: time.Minute.Microseconds()}
}

// claim claims a key of the scope s in a transaction that commits, and returns the token.
func (f *fixture) claim(key, digest string) []byte {
	f.Helper()
	token := f.token()
	f.in(func(tx db.Tx) error {
		rows, err := f.Store.Claim(f.Context(), tx, claimParams(key, digest, token))
		if len(rows) != 1 {
			return errors.Join(err, errors.New("not claimed"))
		}
		return err
	})
	return token
}

func (f *fixture) takeClaim(key, digest string) (token []byte, rows []db.TakeClaimRow) {
	f.Helper()
	token = f.token()
	f.in(func(tx db.Tx) (err error) {
		rows, err = f.Store.TakeClaim(f.Context(), tx, db.TakeClaimParams{
			Scope: "s", Key: key, Digest: digestOf(digest), Token: token, Hold: time.Minute.Microseconds(),
		})
		return err
	})
	return token, rows
}

// end ends a claim and says whether it did.
func (f *fixture) end(key string, token []byte, state int16, reason, result string) bool {
	f.Helper()
	ended := false
	f.in(func(tx db.Tx) error {
		rows, err := f.Store.EndClaim(f.Context(), tx, db.EndClaimParams{
			Scope: "s", Key: key, Token: token, State: state, Reason: reason, Result: []byte(result),
		})
		ended = len(rows) == 1
		return err
	})
	return ended
}

// claimed finds a claim of the scope s.
func (f *fixture) claimed(key, digest string) db.FindClaimsRow {
	f.Helper()
	var found []db.FindClaimsRow
	f.in(func(tx db.Tx) (err error) {
		found, err = f.Store.FindClaims(f.Context(), tx, db.FindClaimsParams{
			Tenants: []string{""}, Scopes: []string{"s"}, Keys: []string{key}, Digests: [][]byte{digestOf(digest)},
		})
		return err
	})
	if len(found) != 1 {
		f.Fatalf("claim %q: %+v", key, found)
	}
	return found[0]
}

func claimsOnce(f *fixture) {
	f.claim("k", "d")
	f.unchanged("a second claim", func() {
		f.in(func(tx db.Tx) error {
			rows, err := f.Store.Claim(f.Context(), tx, claimParams("k", "d", f.token()))
			same(f, "rows of the second", len(rows), 0)
			return err
		})
	})
	c := f.claimed("k", "d")
	same(f, "the claim", []any{c.State, c.Epoch, c.SameDigest, c.Over}, []any{int16(db.ClaimHeld), int64(1), true, false})
	same(f, "of other content", f.claimed("k", "other").SameDigest, false)
	if held := c.HeldUntil - c.ClaimedAt; held < 50e6 || held > 70e6 {
		f.Errorf("held for %d microseconds", held)
	}
	if _, rows := f.takeClaim("k", "d"); len(rows) != 0 {
		f.Errorf("taken from its holder: %+v", rows)
	}
}

func claimCompletes(f *fixture) {
	token := f.claim("k", "d")
	same(f, "by another's token", f.end("k", f.token(), db.ClaimCompleted, "", ""), false)
	same(f, "by the free token", f.end("k", db.FreeToken, db.ClaimCompleted, "", ""), false)
	same(f, "by its own", f.end("k", token, db.ClaimCompleted, "", "r\x00\xff"), true)
	same(f, "again", f.end("k", token, db.ClaimCompleted, "", "other"), false)
	c := f.claimed("k", "d")
	same(f, "the claim", []any{c.State, c.Result, c.Reason}, []any{int16(db.ClaimCompleted), hex.EncodeToString([]byte("r\x00\xff")), ""})
	if _, rows := f.takeClaim("k", "d"); len(rows) != 0 {
		f.Errorf("taken after its end: %+v", rows)
	}
}

func claimFails(f *fixture) {
	token := f.claim("k", "d")
	same(f, "failed", f.end("k", token, db.ClaimFailed, "no connection", ""), true)
	same(f, "the reason", f.claimed("k", "d").Reason, "no connection")
	if _, rows := f.takeClaim("k", "other"); len(rows) != 0 {
		f.Errorf("taken for other content: %+v", rows)
	}
	token, rows := f.takeClaim("k", "d")
	same(f, "taken", len(rows), 1)
	same(f, "epoch", rows[0].Epoch, int64(2))
	same(f, "completed", f.end("k", token, db.ClaimCompleted, "", ""), true)
	same(f, "the reason is gone", f.claimed("k", "d").Reason, "")
}

func claimTaken(f *fixture) {
	old := f.claim("k", "d")
	f.Age(f, 2*time.Minute)
	same(f, "over", f.claimed("k", "d").Over, true)
	token, rows := f.takeClaim("k", "d")
	same(f, "taken", len(rows), 1)
	f.unchanged("the old holder's end", func() {
		same(f, "the old holder's end", f.end("k", old, db.ClaimCompleted, "", "late"), false)
	})
	same(f, "the new holder's end", f.end("k", token, db.ClaimRejected, "no", ""), true)
	c := f.claimed("k", "d")
	same(f, "the claim", []any{c.State, c.Epoch, c.Reason}, []any{int16(db.ClaimRejected), int64(2), "no"})
}

func claimLate(f *fixture) {
	token := f.claim("k", "d")
	f.Age(f, 2*time.Minute)
	same(f, "ended late", f.end("k", token, db.ClaimCompleted, "", "r"), true)
}

func claimRecorded(f *fixture) {
	record := func(key string, state int16, reason string) (n int) {
		f.in(func(tx db.Tx) error {
			rows, err := f.Store.RecordClaim(f.Context(), tx, db.RecordClaimParams{
				Scope: "s", Key: key, Digest: digestOf("d"), State: state, Reason: reason,
			})
			n = len(rows)
			return err
		})
		return n
	}
	same(f, "recorded", record("k", db.ClaimCompleted, ""), 1)
	same(f, "again", record("k", db.ClaimCompleted, ""), 0)
	same(f, "rejected", record("l", db.ClaimRejected, "no such customer"), 1)
	same(f, "the rejection", f.claimed("l", "d").Reason, "no such customer")
}

func claimsApart(f *fixture) {
	for _, tenant := range []string{"", "acme"} {
		for _, scope := range []string{"s", "t"} {
			f.in(func(tx db.Tx) error {
				p := claimParams("k", "d", f.token())
				p.Tenant, p.Scope = tenant, scope
				rows, err := f.Store.Claim(f.Context(), tx, p)
				same(f, tenant+"/"+scope, len(rows), 1)
				return err
			})
		}
	}
	f.in(func(tx db.Tx) error {
		found, err := f.Store.FindClaims(f.Context(), tx, db.FindClaimsParams{
			Tenants: []string{"", "x", "acme"}, Scopes: []string{"s", "s", "t"}, Keys: []string{"k", "k", "k"},
			Digests: [][]byte{digestOf("d"), digestOf("d"), digestOf("d")},
		})
		ordinals := map[int32]bool{}
		for _, row := range found {
			ordinals[row.Ordinal] = true
		}
		same(f, "found", ordinals, map[int32]bool{1: true, 3: true})
		return err
	})
}

func claimRolledBack(f *fixture) {
	tx, _, rollback := f.begin()
	if _, err := f.Store.Claim(f.Context(), tx, claimParams("k", "d", f.token())); err != nil {
		f.Fatal(err)
	}
	if err := rollback(); err != nil {
		f.Fatal(err)
	}
	f.claim("k", "d")
}

func claimWaits(f *fixture) {
	tx, commit, _ := f.begin()
	token := f.token()
	if _, err := f.Store.Claim(f.Context(), tx, claimParams("k", "d", token)); err != nil {
		f.Fatal(err)
	}
	second := make(chan int, 1)
	go func() {
		_ = f.Second.Transact(f.Context(), func(tx db.Tx) error {
			rows, err := f.Second.Claim(f.Context(), tx, claimParams("k", "d", f.token()))
			if err != nil {
				f.Error(err)
			}
			second <- len(rows)
			return err
		})
	}()
	_, err := f.Store.EndClaim(f.Context(), tx, db.EndClaimParams{Scope: "s", Key: "k", Token: token, State: db.ClaimCompleted, Result: []byte("r")})
	if err := errors.Join(err, commit()); err != nil {
		f.Fatal(err)
	}
	same(f, "the second claim", <-second, 0)
	same(f, "which finds the result", f.claimed("k", "d").Result, hex.EncodeToString([]byte("r")))
}

func claimLeaves(f *fixture) {
	token := f.claim("k", "d")
	tx, _, rollback := f.begin()
	for range 2 {
		rows, err := f.Store.Claim(f.Context(), tx, claimParams("k", "d", f.token()))
		same(f, "a claim of a key that is taken", len(rows), 0)
		if err != nil {
			f.Fatal(err)
		}
	}
	same(f, "ended beside it", f.end("k", token, db.ClaimCompleted, "", ""), true)
	if err := rollback(); err != nil {
		f.Fatal(err)
	}
}

func claimsOneWinner(f *fixture) {
	var won atomic.Int64
	f.together(16, func(_ int, store db.Store) {
		err := store.Transact(f.Context(), func(tx db.Tx) error {
			rows, err := store.Claim(f.Context(), tx, claimParams("k", "d", f.token()))
			won.Add(int64(len(rows)))
			return err
		})
		if err != nil {
			f.Error(err)
		}
	})
	same(f, "claims", won.Load(), int64(1))
}

func takesOneWinner(f *fixture) {
	f.claim("k", "d")
	f.Age(f, 2*time.Minute)
	var won atomic.Int64
	f.together(16, func(_ int, store db.Store) {
		err := store.Transact(f.Context(), func(tx db.Tx) error {
			rows, err := store.TakeClaim(f.Context(), tx, db.TakeClaimParams{
				Scope: "s", Key: "k", Digest: digestOf("d"), Token: f.token(), Hold: time.Minute.Microseconds(),
			})
			won.Add(int64(len(rows)))
			return err
		})
		if err != nil {
			f.Error(err)
		}
	})
	same(f, "takes", won.Load(), int64(1))
}

func claimChecks(f *fixture) {
	for name, change := range map[string]func(*db.ClaimParams){
		"blank key": func(p *db.ClaimParams) { p.Key = " " }, "long key": func(p *db.ClaimParams) { p.Key = strings.Repeat("k", 256) },
		"blank scope": func(p *db.ClaimParams) { p.Scope = "" }, "blank tenant": func(p *db.ClaimParams) { p.Tenant = " " },
		"short digest": func(p *db.ClaimParams) { p.Digest = []byte{1} }, "free token": func(p *db.ClaimParams) { p.Token = db.FreeToken },
	} {
		tx, _, rollback := f.begin()
		p := claimParams("k", "d", f.token())
		change(&p)
		if rows, err := f.Store.Claim(f.Context(), tx, p); err == nil {
			f.Errorf("%s: claimed %+v", name, rows)
		}
		_ = rollback()
	}
	same(f, "claims", f.dump().Claims, []tables.Claim(nil))
}

func transacts(f *fixture) {
	failure := errors.New("mine")
	for _, want := range []error{failure, nil} {
		err := f.Store.Transact(f.Context(), func(tx db.Tx) error {
			if _, err := f.Store.Claim(f.Context(), tx, claimParams("k", "d", f.token())); err != nil {
				f.Error(err)
			}
			return want
		})
		if !errors.Is(err, want) {
			f.Errorf("got %v, want %v", err, want)
		}
		claims := map[bool]int{true: 1, false: 0}[want == nil]
		same(f, fmt.Sprint("claims after ", want), len(f.dump().Claims), claims)
	}
	over, cancel := context.WithCancel(f.Context())
	cancel()
	if err := f.Store.Transact(over, func(db.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		f.Errorf("under a context that is over: %v", err)
	}
}

func transactPanics(f *fixture) {
	func() {
		defer func() { same(f, "the panic", recover(), any("mine")) }()
		_ = f.Store.Transact(f.Context(), func(tx db.Tx) error {
			if _, err := f.Store.Claim(f.Context(), tx, claimParams("k", "d", f.token())); err != nil {
				f.Error(err)
			}
			panic("mine")
		})
	}()
	f.claim("k", "d")
}
