package main

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestRetries(t *testing.T) { onEach(t, testRetries) }

func testRetries(t *testing.T, f fixture) {
	f.fill(t)
	s := transcript{t: t, dsn: f.dsn}
	s.run("retries", "1")
	s.run("retries", "3", "--max-attempts", "3", "--initial-delay", "1s", "--jitter", "none", "--max-age", "none")
	s.run("retries", "8", "--max-attempts", "2", "--json")
	s.run("retries", "8", "--max-attempts", "1")
	for _, id := range []string{"4", "5", "6", "99"} {
		s.run("retries", id)
	}
	golden(t, "retries", s.String())
}

// The defaults are those of the library.
func TestRetriesDefaults(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	policy, flags := f.consumer(t).Policy(), newRetries().Flags()
	for name, want := range map[string]string{
		"max-attempts": fmt.Sprint(policy.MaxAttempts), "initial-delay": policy.InitialDelay.String(), "max-delay": policy.MaxDelay.String(),
		"jitter": fmt.Sprint(policy.Jitter), "max-age": policy.MaxAge.String(),
	} {
		if got := flags.Lookup(name).DefValue; got != want {
			t.Errorf("--%s has the default %s, the library %s", name, got, want)
		}
	}
}

// What is foretold comes true: a message that fails again and again is retried after exactly these delays, and dies at the attempt and for
// the cause that was said, also after a replay that kept its attempts, and when it is too old.
// Shows: S4.10
func TestRetriesComeTrue(t *testing.T) {
	t.Parallel()
	policy := outbox.Policy{MaxAttempts: 4, InitialDelay: 7 * time.Minute, MaxDelay: 20 * time.Minute, Jitter: 90}
	flags := []string{"--max-attempts", "4", "--initial-delay", "7m", "--max-delay", "20m", "--jitter", "90"}
	for name, test := range map[string]struct {
		maxAge time.Duration
		spent  int // attempts before a replay that keeps them
		cause  outbox.Cause
	}{
		"attempts": {cause: outbox.CauseAttempts},
		"replayed": {spent: 4, cause: outbox.CauseAttempts},
		"age":      {maxAge: 8 * time.Minute, cause: outbox.CauseAge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openFixture(t, pgtest.New(t))
			f.enqueue(t, outbox.Effect{Kind: "charge", Key: name, MaxAge: test.maxAge})
			shop, err := f.box.Consumer("shop", "warehouse", policy)
			if err != nil {
				t.Fatal(err)
			}
			if test.spent > 0 {
				f.bury(t, "charge", "attempts")
				f.sql(t, "UPDATE outbox.settlement SET attempt = $1", test.spent)
				succeed(t, "replay", "1", "--reason", "once more", "--dsn", f.dsn)
			}
			said := decode[retriesReport](t, append(flags, "retries", "1", "--dsn", f.dsn)...)
			if said.Cause != test.cause || len(said.Retries) == 0 {
				t.Fatalf("foretold %+v", said)
			}
			for i, next := range said.Retries {
				m := f.lease(t, shop, "charge")
				if len(m) != 1 || m[0].Attempt != next.Attempt {
					t.Fatalf("leased %v, foretold attempt %d", m, next.Attempt)
				}
				result, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m[0], outbox.Failed(errors.New("down")))
				if err != nil {
					t.Fatal(err)
				}
				if i+1 == len(said.Retries) {
					continue
				}
				if delay := said.Retries[i+1].DelaySeconds; math.Abs(result.Delay.Seconds()-delay) > 1e-9 {
					t.Errorf("attempt %d: retried after %v, foretold %v s", next.Attempt, result.Delay, delay)
				}
				f.pass(t, result.Delay)
			}
			f.pass(t, 20*time.Minute)
			f.lease(t, shop, "charge")
			if got := f.rows(t, "SELECT concat_ws(' ', cause, attempt) FROM outbox.settlement"); got != fmt.Sprint(said.Cause, " ", said.Retries[len(said.Retries)-1].Attempt) {
				t.Errorf("died of %s, foretold %s after attempt %d", got, said.Cause, said.Retries[len(said.Retries)-1].Attempt)
			}
		})
	}
}

// pass lets time pass for open messages.
func (f fixture) pass(t *testing.T, d time.Duration) {
	t.Helper()
	f.sql(t, `UPDATE outbox.queue SET due_at = due_at - $1::interval, born_at = born_at - $1::interval,
		expires_at = CASE WHEN expires_at < '9999-01-01' THEN expires_at - $1::interval ELSE expires_at END`, d+time.Microsecond)
}

func TestForetold(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	policy := outbox.Policy{MaxAttempts: 3, InitialDelay: time.Minute, MaxDelay: time.Hour, Jitter: outbox.NoJitter, MaxAge: time.Hour}
	consumer, err := f.box.Consumer("c", "t", policy)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	message := func(change func(*outbox.Details)) outbox.Details {
		d := outbox.Details{BornAt: now, MaxAge: outbox.NoMaxAge}
		d.State, d.DueAt = outbox.StatePending, now
		change(&d)
		return d
	}
	for name, test := range map[string]struct {
		of     outbox.Details
		after  []time.Duration // of now
		dies   time.Duration
		cause  outbox.Cause
		expiry time.Duration
	}{
		"fresh":                    {message(func(*outbox.Details) {}), []time.Duration{0, time.Minute, 3 * time.Minute}, 3 * time.Minute, outbox.CauseAttempts, time.Hour},
		"due long ago":             {message(func(d *outbox.Details) { d.DueAt = now.Add(-time.Hour) }), []time.Duration{0, time.Minute, 3 * time.Minute}, 3 * time.Minute, outbox.CauseAttempts, time.Hour},
		"deferred":                 {message(func(d *outbox.Details) { d.DueAt = now.Add(time.Second); d.Attempt = 2 }), []time.Duration{time.Second}, time.Second, outbox.CauseAttempts, time.Hour},
		"its producer's age":       {message(func(d *outbox.Details) { d.ExpiresAt = now.Add(time.Minute) }), []time.Duration{0}, time.Minute, outbox.CauseAge, time.Minute},
		"the policy's age":         {message(func(d *outbox.Details) { d.BornAt = now.Add(-59 * time.Minute); d.ExpiresAt = now.Add(time.Hour) }), []time.Duration{0}, time.Minute, outbox.CauseAge, time.Minute},
		"too old already":          {message(func(d *outbox.Details) { d.ExpiresAt = now }), nil, 0, outbox.CauseAge, 0},
		"running":                  {message(func(d *outbox.Details) { d.State, d.Attempt = outbox.StateLeased, 1 }), []time.Duration{time.Minute, 3 * time.Minute}, 3 * time.Minute, outbox.CauseAttempts, time.Hour},
		"running its last":         {message(func(d *outbox.Details) { d.State, d.Attempt = outbox.StateLeased, 3 }), nil, 0, outbox.CauseAttempts, time.Hour},
		"running and too old":      {message(func(d *outbox.Details) { d.State, d.Attempt, d.ExpiresAt = outbox.StateLeased, 1, now }), nil, 0, outbox.CauseAge, 0},
		"spent, its lease lost":    {message(func(d *outbox.Details) { d.Attempt, d.LeasedUntil = 3, now.Add(-time.Second) }), nil, 0, outbox.CauseExhausted, time.Hour},
		"spent by a lower limit":   {message(func(d *outbox.Details) { d.Attempt = 3 }), nil, 0, outbox.CauseAttempts, time.Hour},
		"an attempt of its own":    {message(func(d *outbox.Details) { d.Attempt, d.AttemptLimit = 3, 4 }), []time.Duration{0}, 0, outbox.CauseAttempts, time.Hour},
		"its own already replayed": {message(func(d *outbox.Details) { d.Attempt, d.AttemptLimit = 1, 2 }), []time.Duration{0, 2 * time.Minute}, 2 * time.Minute, outbox.CauseAttempts, time.Hour},
	} {
		r := foretell(f.box, consumer, test.of, now)
		var after []time.Duration
		for _, retry := range r.Retries {
			after = append(after, retry.At.Sub(now))
		}
		if fmt.Sprint(after) != fmt.Sprint(test.after) || r.DiesAt.Sub(now) != test.dies || r.Cause != test.cause || r.ExpiresAt.Sub(now) != test.expiry {
			t.Errorf("%s: after %v, dies after %v of %s, expires after %v", name, after, r.DiesAt.Sub(now), r.Cause, r.ExpiresAt.Sub(now))
		}
	}
}
