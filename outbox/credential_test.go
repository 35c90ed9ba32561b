package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var someone = By{Actor: "ann", Reason: "new host"}

func (b *bench) credential(name string, permits ...Permit) Credential {
	b.Helper()
	credential, added, err := b.box.AddCredential(b.Context(), name, permits, someone)
	if err != nil || !added {
		b.Fatalf("added %v, %v", added, err)
	}
	return credential
}

func (b *bench) identify(credential Credential) *Identity {
	b.Helper()
	identity, err := b.box.Identify(b.Context(), credential)
	if err != nil {
		b.Fatal(err)
	}
	return identity
}

// Shows: S4.21
func TestCredentialIsNeverPrinted(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	credential := b.credential("mailer", Permit{"wallets", Any})
	identity := b.identify(credential)
	identity.box = nil // whose store has what it stores
	text := credential.Reveal()
	secret := strings.TrimPrefix(text, "mailer:fpw_")
	if len(secret) != 64 {
		t.Fatalf("a credential has %d digits", len(secret))
	}
	stored := b.store.Dump().Credentials[0]
	within := struct {
		Shown  Credential
		hidden Credential
		As     *Identity
		as     *Identity
	}{credential, credential, identity, identity}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("m", "credential", credential, "pointer", &credential, "within", within, "identity", identity)
	}
	out := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
		for _, value := range []any{credential, &credential, within, &within, []Credential{credential}, identity, []*Identity{identity}} {
			out += fmt.Sprintf(verb, value)
		}
	}
	for _, value := range []any{credential, &credential, within, map[string]any{"c": credential}} {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out += string(encoded)
	}
	for _, hidden := range []string{secret, fmt.Sprintf("%x", stored.Hash), fmt.Sprint(stored.Hash), fmt.Sprint(stored.Salt)} {
		if strings.Contains(strings.ToLower(out), hidden) {
			t.Errorf("%q appears in %s", hidden, out)
		}
	}
	if !strings.Contains(out, redacted) || credential.String() != redacted || fmt.Sprint(identity) != "mailer" {
		t.Errorf("printed %q", out)
	}
}

// What cannot be a credential is refused without being repeated; what was revealed comes back as itself.
func TestParseCredential(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	for _, name := range []string{"w", "a:b", "fpw_", "é/1"} {
		given := b.credential(name, Permit{Any, Any})
		parsed, err := ParseCredential(given.Reveal())
		if err != nil || parsed.Name() != name || parsed.IsZero() {
			t.Fatalf("parsed %q, %v", parsed.Name(), err)
		}
		b.identify(parsed)
	}
	digits := strings.Repeat("0a", 32)
	for _, text := range []string{
		"", ":", "fpw_" + digits, ":fpw_" + digits, " :fpw_" + digits, "*:fpw_" + digits, "w:" + digits, "w:fpw_" + digits[1:], "w:fpw_" + digits + "00",
		"w:fpw_" + strings.ToUpper(digits), "w:fpw_" + digits + "\n", "w:FPW_" + digits, strings.Repeat("w", 129) + ":fpw_" + digits, "w\x00:fpw_" + digits, "w:fpw_" + strings.Repeat("0z", 32),
	} {
		credential, err := ParseCredential(text)
		if !errors.Is(err, ErrInvalid) || !credential.IsZero() || text != "" && text != ":" && strings.Contains(err.Error(), text) || strings.Contains(fmt.Sprint(err), "0a0a") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if (Credential{}).Reveal() != "" || (Credential{}).Name() != "" || fmt.Sprint(Credential{}) != redacted {
		t.Error("the zero Credential is something")
	}
}

// An unknown name and a wrong secret are one refusal; of a revoked credential only its holder learns that it was.
// Shows: S4.21
func TestIdentify(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	credential, other := b.credential("w", Permit{"wallets", Any}), b.credential("x", Permit{"wallets", Any})
	forged := func(name string, of Credential) Credential {
		parsed, err := ParseCredential(strings.Replace(of.Reveal(), of.name, name, 1))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	refused := func(what string, credential Credential, want error) string {
		t.Helper()
		identity, err := b.box.Identify(t.Context(), credential)
		if !errors.Is(err, want) || identity != nil || strings.Contains(err.Error(), "fpw_") {
			t.Errorf("%s: %v", what, err)
		}
		return fmt.Sprint(err)
	}
	if b.identify(credential).Name() != "w" {
		t.Error("another name")
	}
	if unknown, wrong := refused("unknown", forged("nobody", credential), ErrUnidentified), refused("wrong secret", forged("w", other), ErrUnidentified); unknown != wrong {
		t.Errorf("%q is not %q", unknown, wrong)
	}
	refused("none", Credential{}, ErrInvalid)
	if revoked, err := b.box.RevokeCredential(t.Context(), "w", someone); err != nil || !revoked {
		t.Fatal(revoked, err)
	}
	refused("revoked", credential, ErrRevoked)
	refused("revoked and wrong", forged("w", other), ErrUnidentified)
}

// Shows: S4.21
func TestLeaseNeedsTheRequiredCredential(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{RequireCredential: true}, Policy{})
	b.enqueue(effect("k"))
	lanes := []PlannedLane{{Lane: Lane{Kind: "charge"}}}
	lease := func(as *Identity, scope Scope) (n int, errs [3]error) {
		t.Helper()
		settled := Message{OrderKey: "o", Tenant: ""}
		messages, err := b.box.Lease(t.Context(), b.consumer, LeaseRequest{As: as, Kinds: []string{"charge"}, Scope: scope, Limit: 1, For: time.Minute})
		errs[0] = err
		_, errs[1] = b.box.LeaseLanes(t.Context(), LeasePlan{Consumer: b.consumer, As: as, Scope: scope, For: time.Minute, Lanes: lanes, Quota: 1, Limit: 1})
		_, errs[2] = b.box.LeaseSuccessors(t.Context(), SuccessorPlan{
			Consumer: b.consumer, As: as, Scope: scope, For: time.Minute, Kinds: []string{"charge"}, Settled: []Message{settled},
		})
		return len(messages), errs
	}
	refused := func(what string, as *Identity, scope Scope, want error, words ...string) {
		t.Helper()
		calls := b.calls()
		n, errs := lease(as, scope)
		for _, err := range errs {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %v lacks %s", what, err, word)
				}
			}
		}
		if n > 0 || len(*calls) > 0 {
			t.Errorf("%s: %d messages, sent %v", what, n, *calls)
		}
	}
	refused("no credential", nil, Tenants(""), ErrUnidentified)
	narrow := b.identify(b.credential("narrow", Permit{"wallets", ""}, Permit{"wallets", "a"}, Permit{"other", Any}))
	refused("all tenants", narrow, AllTenants, ErrNotPermitted, `"narrow"`, `"wallets"`, "all tenants")
	refused("another tenant", narrow, Tenants("a", "b"), ErrNotPermitted, `"wallets"`, `"b"`)
	refused("another consumer", b.identify(b.credential("another", Permit{"other", Any})), Tenants(""), ErrNotPermitted, `"wallets"`)
	elsewhere, err := New(b.store, Config{})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := elsewhere.Identify(t.Context(), b.credential("theirs", Permit{Any, Any}))
	if err != nil {
		t.Fatal(err)
	}
	refused("another box's", theirs, Tenants(""), ErrUnidentified)
	for _, scope := range []Scope{Tenants("a"), Tenants("", "a")} {
		if _, errs := lease(narrow, scope); errs != [3]error{} {
			t.Errorf("refused: %v", errs)
		}
	}
	if b.store.Dump().Queue[0].LeasedUntil.Equal(db.Never) {
		t.Error("nothing was leased")
	}
	if _, err := b.box.RevokeCredential(t.Context(), "narrow", someone); err != nil {
		t.Fatal(err)
	}
	if err := narrow.Check(t.Context()); !errors.Is(err, ErrRevoked) {
		t.Errorf("checked: %v", err)
	}
	refused("revoked", narrow, Tenants(""), ErrRevoked, `"narrow"`)
}

func TestCredentialsAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	if none, err := b.box.Credentials(t.Context()); err != nil || none != nil {
		t.Error(none, err)
	}
	b.credential("b", Permit{"c", "y"}, Permit{"c", "x"}, Permit{"c", "y"})
	b.credential("a", Permit{Any, ""})
	if _, added, err := b.box.AddCredential(t.Context(), "b", []Permit{{Any, Any}}, someone); added || err != nil {
		t.Error(added, err)
	}
	for i, want := range []bool{true, false} {
		if revoked, err := b.box.RevokeCredential(t.Context(), "b", By{"ben", " gone "}); revoked != want || err != nil {
			t.Error(i, revoked, err)
		}
	}
	records, err := b.box.Credentials(t.Context())
	if err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	for _, r := range records {
		if time.Since(r.AddedAt) > time.Minute || r.Added != someone {
			t.Errorf("added %+v", r)
		}
	}
	if a := records[0]; a.Name != "a" || !slices.Equal(a.Permits, []Permit{{Any, ""}}) || !a.RevokedAt.IsZero() || a.Revoked != (By{}) {
		t.Errorf("got %+v", a)
	}
	if r := records[1]; !slices.Equal(r.Permits, []Permit{{"c", "x"}, {"c", "y"}}) || r.Revoked.Actor != "ben" || time.Since(r.RevokedAt) > time.Minute {
		t.Errorf("got %+v", r)
	}
}

func TestBadCredentialsAreRefusedBeforeAnyStatement(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	calls := b.calls()
	good := []Permit{{"c", ""}}
	many := make([]Permit, maxPermits+1)
	for i := range many {
		many[i] = Permit{"c", fmt.Sprint(i)}
	}
	for _, c := range []struct {
		name    string
		permits []Permit
		by      By
		field   string
	}{
		{"", good, someone, "Name"}, {Any, good, someone, "Name"}, {"a b", good, someone, "Name"}, {"a\x1b", good, someone, "Name"}, {strings.Repeat("n", 129), good, someone, "Name"},
		{"w", nil, someone, "Permits"}, {"w", many, someone, "Permits"}, {"w", []Permit{{"", "t"}}, someone, "Consumer"}, {"w", []Permit{{"c", " "}}, someone, "Tenant"},
		{"w", good, By{}, "Actor"}, {"w", good, By{Actor: "a"}, "Reason"},
	} {
		_, _, err := b.box.AddCredential(t.Context(), c.name, c.permits, c.by)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%q %v %v: %v", c.name, c.permits, c.by, err)
		}
	}
	if _, err := b.box.RevokeCredential(t.Context(), "", By{}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if len(*calls) > 0 {
		t.Errorf("sent %v", *calls)
	}
}
