package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Shows: S1.8 S1.9 S1.10 S2.13
func TestPolicyFillsFromTheBoxAndTheDefaults(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Policy: Policy{MaxAttempts: 5, MaxAge: time.Hour, Jitter: NoJitter, BlockOnDead: true}}, Policy{MaxAttempts: 3, MaxSnooze: time.Minute})
	got := b.consumer.Policy()
	if got.MaxAttempts != 3 || got.InitialDelay != 30*time.Second || got.MaxDelay != 15*time.Minute || got.Jitter != NoJitter ||
		got.MaxAge != time.Hour || got.MaxSnooze != time.Minute || !got.BlockOnDead || got.AcceptLate || got.DropDelivered {
		t.Errorf("filled to %+v", got)
	}
	if got := newBench(t, Config{}, Policy{}).consumer.Policy(); got.MaxAttempts != 12 || got.MaxAge != 24*time.Hour || got.Jitter != 20 || got.MaxSnooze != 0 {
		t.Errorf("defaults %+v", got)
	}
}

// Shows: S1.11
func TestInvalidErrorsNameAllProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	_, err := b.box.Consumer("", "*", Policy{MaxAttempts: -1, MaxDelay: -1, Jitter: 150, MaxAge: -1})
	const want = "outbox: consumer: invalid: Consumer is blank; Target is the wildcard *, which no name may be; " +
		"MaxAttempts is -1, not between 1 and 10000; MaxDelay is negative: -1ns; " +
		"Jitter is 150, not between 1 and 100 percent; NoJitter is none; MaxAge is negative: -1ns"
	if err == nil || err.Error() != want || !errors.Is(err, ErrInvalid) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	effects := make([]Effect, 500)
	_, err = b.box.EnqueueMany(t.Context(), b.store.Begin(), effects)
	if err == nil || len(err.Error()) > 1000 || !strings.HasSuffix(err.Error(), "and 1990 more") {
		t.Errorf("the error of many problems is %v", err)
	}
}

func TestMaxAgesOfKinds(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{MaxAge: time.Hour})
	limited, err := b.consumer.WithMaxAges(map[string]time.Duration{"push": time.Minute, "mail": 48 * time.Hour, "none": NoMaxAge})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]time.Duration{"push": time.Minute, "mail": time.Hour, "none": time.Hour, "other": time.Hour} {
		if got := limited.maxAge(kind); got != want.Microseconds() {
			t.Errorf("%s: %d µs, want %v", kind, got, want)
		}
	}
	ageless := newBench(t, Config{}, Policy{MaxAge: NoMaxAge}).consumer
	if got := ageless.maxAge("push"); got != 0 {
		t.Errorf("no age is sent as %d", got)
	}
	if _, err := b.consumer.WithMaxAges(map[string]time.Duration{"push": -1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative age: %v", err)
	}
}

func TestScopeIncludes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		scope  Scope
		tenant string
		want   bool
	}{
		{Scope{}, "", true}, {Scope{}, "a", false}, {AllTenants, "a", true}, {AllTenants, Any, true},
		{Tenants("b", "a"), "a", true}, {Tenants("b", "a"), "", false}, {Tenants("a"), Any, false}, {Tenants(), "", false},
	} {
		if got := test.scope.Includes(test.tenant); got != test.want {
			t.Errorf("%+v includes %q: %t", test.scope, test.tenant, got)
		}
	}
	var found problems
	if Tenants("a", "*", " ").check(&found); len(found.found) != 2 {
		t.Errorf("problems %v", found.err())
	}
}
