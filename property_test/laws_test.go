package property_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// A law is a sentence that holds for all arguments. Laws are tried through the public calls, on a store, so that they hold for what is
// stored and not only for what is computed.

// A court is where laws are tried: a box on an empty store.
type court struct {
	*rapid.T
	tb    testing.TB // of the store's own failures
	ctx   context.Context
	stage *stage
	box   *outbox.Box
}

// everywhere tries a law on each driver.
func everywhere(t *testing.T, config outbox.Config, law func(*court)) {
	t.Helper()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			try(t, d, config, law)
		})
	}
}

// inMemory tries a law that no driver has a part in.
func inMemory(t *testing.T, config outbox.Config, law func(*court)) {
	t.Helper()
	try(t, drivers[0], config, law)
}

func try(t *testing.T, d driver, config outbox.Config, law func(*court)) {
	t.Helper()
	within := d.open(t)
	config.Logger = slog.New(slog.DiscardHandler)
	rapid.Check(t, func(rt *rapid.T) {
		within(rt, func(rt *rapid.T, s *stage) {
			c := &court{T: rt, tb: t, ctx: context.WithoutCancel(t.Context()), stage: s}
			c.box = of(outbox.New(s.store, config)).must(c)
			law(c)
		})
	})
}

// An answer is what a call returned.
type answer[R any] struct {
	result R
	err    error
}

func of[R any](result R, err error) answer[R] { return answer[R]{result, err} }

// must is the result of a call that cannot fail here.
func (a answer[R]) must(c *court) R {
	c.Helper()
	if a.err != nil {
		c.Fatalf("unexpected error: %v", a.err)
	}
	return a.result
}

func (c *court) consumer(policy outbox.Policy) *outbox.Consumer {
	return of(c.box.Consumer("mail", "smtp", policy)).must(c)
}

// enqueue commits effects.
func (c *court) enqueue(effects ...outbox.Effect) outbox.Receipts {
	tx := c.stage.begin(c.tb)
	receipts, err := c.box.EnqueueMany(c.ctx, tx.Tx, effects)
	if commitErr := tx.commit(); err != nil || commitErr != nil {
		c.Fatalf("enqueue: %v, %v", err, commitErr)
	}
	return receipts
}

// effect is a plain one.
func effect(key string) outbox.Effect {
	return outbox.Effect{Consumer: "mail", Target: "smtp", Kind: "a", Key: key}
}

// lease leases everything that is due.
func (c *court) lease(consumer *outbox.Consumer) []outbox.Message {
	return of(c.box.Lease(c.ctx, consumer, outbox.LeaseRequest{Kinds: kinds, Scope: outbox.AllTenants, Limit: 1000, For: time.Hour})).must(c)
}

func (c *court) settle(consumer *outbox.Consumer, settling outbox.Settling) outbox.Result {
	return of(c.box.SettleMany(c.ctx, consumer, outbox.AllTenants, []outbox.Settling{settling})).must(c)[0]
}
