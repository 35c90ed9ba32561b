package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/fencepost-go/fencepost/internal/content"
)

// RetryDelay is the delay of a message after its nth failure, as a settle gives it: the base, shortened by up to the jitter. The same message
// and n always give the same delay, and of the message only Tenant, Consumer and Key matter, so that it can be foretold. It is at least a
// nanosecond and at most the policy's MaxDelay. The consumer must not be nil.
func (b *Box) RetryDelay(c *Consumer, m Message, n int) time.Duration {
	base := b.baseDelay(c, n)
	if c.policy.Jitter == NoJitter {
		return base
	}
	shortened := time.Duration(float64(base) * float64(c.policy.Jitter) / 100 * spread(m, n))
	return max(base-shortened, 1)
}

// baseDelay is the delay before jitter: the curve's or the application's, capped.
func (b *Box) baseDelay(c *Consumer, n int) time.Duration {
	policy := c.policy
	if policy.Backoff != nil {
		delay, problem := contain(func() time.Duration { return policy.Backoff(n) })
		if problem == nil && delay > 0 {
			return min(delay, policy.MaxDelay)
		}
		if problem == nil {
			problem = errors.New("answered with less than a nanosecond")
		}
		b.observer.Contained("Policy.Backoff", problem)
		c.faulty.Do(func() {
			b.log.Warn("backoff of a policy is unusable, the doubling serves instead",
				"consumer", c.name, "target", c.target, "retry", n, "problem", problem)
		})
	}
	return curve(policy.InitialDelay, policy.MaxDelay, n)
}

// curve is min(limit, initial × 2^(n−1)), for any n. The comparison shifts the limit down, which cannot overflow, so that the shift up
// does not either.
func curve(initial, limit time.Duration, n int) time.Duration {
	doublings := max(n, 1) - 1
	if initial > limit>>doublings {
		return limit
	}
	return initial << doublings
}

// spread is a number in [0, 1) that looks random and depends on nothing but the message's identity and n.
func spread(m Message, n int) float64 {
	hash := sha256.New()
	for _, part := range []string{m.Tenant, m.Consumer, m.Key} {
		content.Write(hash, []byte(part))
	}
	_ = binary.Write(hash, binary.BigEndian, int64(n))
	const bits = 53 // what a float64 holds exactly
	return float64(binary.BigEndian.Uint64(hash.Sum(nil))>>(64-bits)) / math.Exp2(bits)
}
