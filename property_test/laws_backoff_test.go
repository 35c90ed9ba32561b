package property_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// The laws of backoff (I13). The number of failures of an unavailable target is the caller's to say, so every n can be had at once.

// failures are of every size, those at which a doubling wraps round among them (C13). Parallel tests cannot share a generator.
func failures() *rapid.Generator[int] {
	return rapid.OneOf(
		rapid.IntRange(1, 12), rapid.SampledFrom([]int{31, 32, 33, 62, 63, 64, 65, 1000, math.MaxInt32, math.MaxInt}), rapid.IntRange(1, math.MaxInt))
}

func drawPolicy(c *court) outbox.Policy {
	longest := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(c.T, "longest delay"))
	return outbox.Policy{
		InitialDelay: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(c.T, "first delay")),
		MaxDelay:     longest,
		Jitter:       rapid.OneOf(rapid.IntRange(1, 100), rapid.Just(outbox.NoJitter)).Draw(c.T, "jitter"),
	}
}

// base is min(longest, first × 2^(n−1)), by arithmetic that cannot overflow.
func base(policy outbox.Policy, n int) *big.Int {
	longest := big.NewInt(int64(policy.MaxDelay))
	grown := new(big.Int).Lsh(big.NewInt(int64(policy.InitialDelay)), uint(min(n-1, 64)))
	if grown.Cmp(longest) > 0 {
		return longest
	}
	return grown
}

// delayOf has the target of a message unavailable for the nth time, and gives the delay.
func (c *court) delayOf(policy outbox.Policy, e outbox.Effect, n int) time.Duration {
	consumer := c.consumer(policy)
	c.enqueue(e)
	message := c.lease(consumer)[0]
	result := c.settle(consumer, outbox.Settling{Message: message, Outcome: outbox.Failed(outbox.Unavailable(errors.New("refused"))), Failures: n})
	if result.Status != outbox.RetryScheduled {
		c.Fatalf("status %v", result.Status)
	}
	return result.Delay
}

// The delay lies in (base × (1 − jitter), base], for every policy and every n: never zero, never negative, never beyond the cap (C13).
func TestDelayLiesInItsWindow(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		policy, n := drawPolicy(c), failures().Draw(c.T, "n")
		delay := c.delayOf(policy, effect("k"), n)
		most := base(policy, n)
		least := new(big.Int).Set(most)
		if policy.Jitter != outbox.NoJitter {
			least.Mul(most, big.NewInt(int64(100-policy.Jitter))).Quo(least, big.NewInt(100))
			least.Sub(least, new(big.Int).Rsh(most, 50)) // what a float64 may lose
		}
		if got := big.NewInt(int64(delay)); delay <= 0 || got.Cmp(most) > 0 || got.Cmp(least) < 0 {
			c.Fatalf("delay %v, not in (%v, %v]", delay, time.Duration(least.Int64()), time.Duration(most.Int64()))
		}
	})
}

// The same message and attempt give the same delay, whatever else differs: box, store, payload, priority, time (I13).
func TestDelayIsTheMessagesOwn(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		policy, n := drawPolicy(c), failures().Draw(c.T, "n")
		e := effect(rapid.StringMatching(`[a-z]{1,9}`).Draw(c.T, "key"))
		first := c.delayOf(policy, e, n)
		c.stage.age(c.tb, unit)
		elsewhere := *c
		elsewhere.stage = memoryStage()
		elsewhere.box = of(outbox.New(elsewhere.stage.store, outbox.Config{})).must(c)
		e.Payload, e.Priority, e.OrderKey = []byte("other"), 7, "o"
		if second := elsewhere.delayOf(policy, e, n); second != first {
			c.Fatalf("the same message was delayed by %v and by %v", first, second)
		}
	})
}

// Before jitter a later failure never waits less than an earlier one.
func TestDelayNeverShrinks(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		policy := drawPolicy(c)
		policy.Jitter = outbox.NoJitter
		before := time.Duration(0)
		for i, n := range slices.Sorted(slices.Values(rapid.SliceOfN(failures(), 2, 6).Draw(c.T, "n"))) {
			delay := c.delayOf(policy, effect(fmt.Sprint(i)), n)
			if delay < before {
				c.Fatalf("after failure %d the delay is %v, after an earlier one %v", n, delay, before)
			}
			before = delay
		}
	})
}

// A curve of the application's own is capped and jittered like the library's, and where it cannot be used the library's serves (B13).
func TestDelayOfOwnCurve(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		policy, n := drawPolicy(c), failures().Draw(c.T, "n")
		answer := time.Duration(rapid.Int64().Draw(c.T, "answer"))
		panics := rapid.Bool().Draw(c.T, "panics")
		policy.Backoff = func(int) time.Duration {
			if panics {
				panic("no answer")
			}
			return answer
		}
		delay := c.delayOf(policy, effect("k"), n)
		most := base(policy, n)
		if !panics && answer > 0 {
			most = big.NewInt(int64(min(answer, policy.MaxDelay)))
		}
		if delay <= 0 || big.NewInt(int64(delay)).Cmp(most) > 0 {
			c.Fatalf("delay %v, longer than %v", delay, time.Duration(most.Int64()))
		}
	})
}

// What fails together does not come back together (C14): the delays of a few hundred messages fill half of their window and more.
func TestDelaysSpread(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		policy := outbox.Policy{InitialDelay: 30 * time.Second, MaxDelay: time.Hour, Jitter: rapid.IntRange(1, 100).Draw(c.T, "jitter")}
		consumer, prefix := c.consumer(policy), rapid.StringMatching(`[a-z]{0,9}`).Draw(c.T, "prefix")
		var effects []outbox.Effect
		for i := range 200 {
			effects = append(effects, effect(fmt.Sprint(prefix, i)))
		}
		c.enqueue(effects...)
		var delays []time.Duration
		for _, message := range c.lease(consumer) {
			delays = append(delays, c.settle(consumer, outbox.Settling{Message: message, Outcome: outbox.Failed(errors.New("down"))}).Delay)
		}
		window := policy.InitialDelay * time.Duration(policy.Jitter) / 100
		if got := slices.Max(delays) - slices.Min(delays); got < window/2 {
			c.Fatalf("delays differ by %v at most, out of a window of %v", got, window)
		}
	})
}

// A message comes due exactly its delay after its settle, and not a microsecond before (I13).
func TestDelayIsWaitedFor(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		policy := outbox.Policy{
			InitialDelay: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(c.T, "delay")), MaxDelay: time.Hour, MaxAge: outbox.NoMaxAge,
		}
		delay := c.delayOf(policy, effect("k"), 1)
		consumer := c.consumer(policy)
		whole := (delay + time.Microsecond - 1).Truncate(time.Microsecond) // as the store keeps it
		c.stage.age(c.tb, whole-time.Microsecond)
		if early := c.lease(consumer); len(early) > 0 {
			c.Fatalf("leased before its delay of %v", delay)
		}
		c.stage.age(c.tb, time.Microsecond)
		if due := c.lease(consumer); len(due) != 1 {
			c.Fatalf("not leased after its delay of %v", delay)
		}
	})
}
