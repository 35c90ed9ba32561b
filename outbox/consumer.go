package outbox

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Consumer is who performs effects and where, with the policy that holds for exactly this (name, target). Make one with Box.Consumer; it
// may be used from several goroutines at once.
type Consumer struct {
	name, target string
	policy       Policy
	ages         map[string]time.Duration // by kind, where shorter than the policy's
	faulty       *sync.Once               // the first fault of Policy.Backoff is logged
}

// Consumer binds a policy to (name, target). It reports every problem at once as ErrInvalid.
func (b *Box) Consumer(name, target string, policy Policy) (*Consumer, error) {
	var found problems
	found.name("Consumer", name, maxName)
	found.name("Target", target, maxName)
	policy = policy.or(b.policy)
	policy.check(&found)
	if err := found.err(); err != nil {
		return nil, failed("consumer", err)
	}
	return &Consumer{name: name, target: target, policy: policy, faulty: new(sync.Once)}, nil
}

// Name is the consumer's name.
func (c *Consumer) Name() string { return c.name }

// Target is where the consumer performs effects.
func (c *Consumer) Target() string { return c.target }

// Policy is the policy with its defaults filled in.
func (c *Consumer) Policy() Policy { return c.policy }

// WithMaxAges gives a copy of the consumer in which messages of some kinds may be less old than the policy says; a longer age changes
// nothing. A kind's age of zero is the policy's.
func (c *Consumer) WithMaxAges(byKind map[string]time.Duration) (*Consumer, error) {
	var found problems
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		found.name("Kind", kind, maxName)
		found.age("MaxAge", byKind[kind])
	}
	if err := found.err(); err != nil {
		return nil, failed("consumer", err)
	}
	limited := *c
	limited.ages = maps.Clone(byKind)
	return &limited, nil
}

// maxAge is the age of one kind in microseconds, 0 for none, as the statements take it.
func (c *Consumer) maxAge(kind string) int64 {
	age := c.policy.MaxAge
	if own := c.ages[kind]; own > 0 {
		age = min(age, own)
	}
	return ageMicros(age)
}
