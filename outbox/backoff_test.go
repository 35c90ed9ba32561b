package outbox

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
)

// C13: at some attempt a doubled delay overflowed, turned negative or zero, and the job ran hot. Either delay may be set alone.
// Shows: S1.10 S1.24 S3.9
func TestC13BackoffNeverWraps(t *testing.T) {
	t.Parallel()
	attempts := []int{1, 2, 10, 31, 32, 33, 62, 63, 64, 65, 1000, math.MaxInt32}
	for _, initial := range []time.Duration{1, time.Microsecond, time.Second, time.Hour} {
		for _, limit := range []time.Duration{time.Second, 15 * time.Minute, math.MaxInt64} {
			before := time.Duration(0)
			for _, attempt := range attempts {
				base := curve(initial, limit, attempt)
				if base <= 0 || base > limit || base < before {
					t.Errorf("initial %v, cap %v, attempt %d: %v after %v", initial, limit, attempt, base, before)
				}
				before = base
			}
			if before != limit {
				t.Errorf("initial %v: the curve ends at %v, not at its cap %v", initial, before, limit)
			}
			for _, jitter := range []int{NoJitter, 1, 20, 100} {
				b := newBench(t, Config{}, Policy{InitialDelay: initial, MaxDelay: limit, Jitter: jitter})
				for _, attempt := range attempts {
					delay := b.box.RetryDelay(b.consumer, Message{Key: "k"}, attempt)
					if delay <= 0 || delay > limit || micros(delay) <= 0 {
						t.Errorf("initial %v, cap %v, jitter %d, attempt %d: %v", initial, limit, jitter, attempt, delay)
					}
				}
			}
		}
	}
}

// C14: an outage failed many messages at once and fixed delays brought them all back together.
// Shows: S1.25
func TestC14JitterSpreads(t *testing.T) {
	t.Parallel()
	const n, bucket = 1000, 100 * time.Millisecond
	b := newBench(t, Config{}, Policy{InitialDelay: 30 * time.Second, Jitter: 20})
	buckets := map[time.Duration]int{}
	var delays []time.Duration
	for i := range n {
		m := Message{Consumer: "wallets", Key: fmt.Sprintf("order-%d", i)}
		delay := b.box.RetryDelay(b.consumer, m, 1)
		if again := b.box.RetryDelay(b.consumer, m, 1); again != delay {
			t.Fatalf("the same message and attempt gave %v and %v", delay, again)
		}
		if delay <= 24*time.Second || delay > 30*time.Second {
			t.Fatalf("%v lies outside of (24s, 30s]", delay)
		}
		delays = append(delays, delay)
		buckets[delay/bucket]++
	}
	if spread := slices.Max(delays) - slices.Min(delays); spread < 3*time.Second {
		t.Errorf("the delays cover %v of 6s", spread)
	}
	for at, count := range buckets {
		if count > n/20 {
			t.Errorf("%d of %d delays fall at %v", count, n, at*bucket)
		}
	}
}

// Shows: S1.25 I13
func TestDelayDependsOnIdentityAndAttemptAlone(t *testing.T) {
	t.Parallel()
	base := Message{Tenant: "a", Consumer: "c", Key: "k"}
	same := base
	same.ID, same.Epoch, same.Kind = 7, 9, "other"
	if spread(base, 1) != spread(same, 1) {
		t.Error("what is no part of the identity changed the delay")
	}
	for _, other := range []Message{
		{Tenant: "b", Consumer: "c", Key: "k"}, {Tenant: "a", Consumer: "d", Key: "k"}, {Tenant: "a", Consumer: "c", Key: "l"},
		{Tenant: "ac", Consumer: "", Key: "k"}, // the parts do not run together
	} {
		if spread(base, 1) == spread(other, 1) {
			t.Errorf("%+v has the same delay", other)
		}
	}
	if spread(base, 1) == spread(base, 2) {
		t.Error("the attempt does not change the delay")
	}
	// A change of the formula would move every delay in the field.
	if got := spread(base, 1); got != 0.414567017517247 {
		t.Errorf("spread of a known message is %v", got)
	}
}

// B13: a backoff of the application that panics or answers nonsense is passed by, counted and logged once.
func TestCustomBackoffIsContained(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		backoff   func(int) time.Duration
		want      time.Duration
		contained int
	}{
		"is used":        {func(retry int) time.Duration { return time.Duration(retry) * time.Second }, 3 * time.Second, 0},
		"is capped":      {func(int) time.Duration { return math.MaxInt64 }, time.Minute, 0},
		"panics":         {func(int) time.Duration { panic("boom") }, 8 * time.Second, 2},
		"panics err":     {func(int) time.Duration { panic(errors.New("boom")) }, 8 * time.Second, 2},
		"ends goroutine": {func(int) time.Duration { runtime.Goexit(); return 0 }, 8 * time.Second, 2},
		"is negative":    {func(int) time.Duration { return -1 }, 8 * time.Second, 2},
		"is most":        {func(int) time.Duration { return math.MinInt64 }, 8 * time.Second, 2},
		"is zero":        {func(int) time.Duration { return 0 }, 8 * time.Second, 2},
		"indexes beyond": {func(retry int) time.Duration { return []time.Duration{1}[retry] }, 8 * time.Second, 2},
	} {
		contained := 0
		log := &recorder{}
		b := newBench(t, Config{
			Observer: &Observer{Contained: func(what string, _ any) { contained++ }},
			Logger:   log.logger(),
		}, Policy{Backoff: test.backoff, InitialDelay: 2 * time.Second, MaxDelay: time.Minute, Jitter: NoJitter})
		for range 2 {
			if got := b.box.RetryDelay(b.consumer, Message{Key: "k"}, 3); got != test.want {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
		if contained != test.contained || len(log.lines()) != min(contained, 1) {
			t.Errorf("%s: contained %d times, logged %q", name, contained, log.lines())
		}
	}
}
