package sender

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// Config of a Sender. Zero fields take their defaults; negative ones are refused.
type Config struct {
	// Handlers by kind. Without any the sender sends no query at all.
	Handlers Handlers
	// Scope is whose messages are performed. Default: the tenant "" alone.
	Scope outbox.Scope

	// Slots is how many handlers run at once. Default 16, at most 10,000.
	Slots int
	// Batch is how many messages one statement leases at most, and how many may wait for a slot once handlers have proved short. Default 100,
	// at most 1,000.
	Batch int
	// Lease is for how long a message is leased; it is renewed at a third of that while its handler runs. Until it ends nobody takes over from
	// a process that died. A statement that is not answered within a third of it has failed, a scan for due messages within 10 s. Default
	// 30 s, at least 1 s, at most 1 h.
	Lease time.Duration
	// LongestHold is how long a message is held in all, renewals included, before its handler is told that the lease is lost. Default 12 h, at
	// least every Lease.
	LongestHold time.Duration
	// Poll is how often an idle sender looks for due messages, with one query. Default 500 ms, between 100 ms and 1 h.
	Poll time.Duration
	// Drain is how long a stop waits for handlers before it ends their contexts with outbox.ErrStopping. Default 10 s or the shortest Lease,
	// whichever is less; not longer than the shortest Lease.
	Drain time.Duration
	// Grace is how long handlers may need to return once their contexts have ended, as those do that have processes to end: a context ends that
	// much before its lease does, and a stop waits that much longer than Drain. Default 0: handlers return at once. At most a third of the
	// shortest Lease.
	Grace time.Duration

	// Listen wakes the sender by the database's notifications, over a connection of its own that the store is configured with. A store
	// without one is logged, and the poll serves.
	Listen bool
	// Notify runs the box's notifier: other processes hear of what is committed through this box. One sender of a box is enough.
	Notify bool

	// HandOff has the sender perform what its own process enqueues without looking for it: what goes through the sender's Box, to its consumer and
	// in its Scope, is stored with a lease already (5 s, or the shortest Lease if that is less), as long as there are free slots, and starts
	// when Receipt.Committed, Box.Committed or InTx says that the transaction has committed. That costs one renewal for all that were committed
	// meanwhile, and no lease statement and no poll; the producer's insert is the same plus its lease. Effects with an order key, a due time or
	// a delay, in a paused lane or in one whose target is unavailable, duplicates, and what finds no free slot are leased in the usual way. So is
	// what two thirds of that lease, or its age, did not see confirmed. What is committed without a word is found after a Poll.
	//
	// If the commit fails there is nothing; if the process dies, or the commit takes longer than that lease, another lease follows it: the
	// attempt is spent, so the policy has to allow 2, and the message is Unsure as after any lost lease. A transaction that hands off needs the
	// rights of a producer and of a sender; the first that has not fails with db.ErrDenied, and from then on nothing is handed off. RunOnce does
	// not. Default false.
	HandOff bool

	// Name is the worker's label for operators; two may have the same. Default: the Credential's, of which it must not differ, or else the host's
	// name. At most 128 bytes.
	Name string
	// Credential says which named worker this is; a box may require one. It is verified before the first lease, and refused there when the
	// Scope or the consumer reaches beyond it. With each renewal, and every 10 s at least, it is looked up again: once it was revoked nothing
	// more is leased, handlers' contexts end with outbox.ErrRevoked, what was not performed is given back, what was is settled, and Run returns
	// outbox.ErrRevoked. While it cannot be looked up nothing is leased from 30 s on.
	Credential outbox.Credential
	// RequireRole refuses to start with a database role that may do more than a sender should, or less. Without it that is a warning.
	RequireRole bool
	// Verify runs before the first lease; its error ends Run. Its context ends after a third of the shortest Lease.
	Verify func(context.Context) error
}

// Bounds of a Config.
const (
	maxSlots  = 10_000
	maxBatch  = 1_000
	minLease  = time.Second
	minPoll   = 100 * time.Millisecond
	maxPoll   = time.Hour
	maxName   = 128
	maxHold   = 7 * 24 * time.Hour
	someDrain = 10 * time.Second
)

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	c.Slots = first(c.Slots, 16)
	c.Batch = first(c.Batch, 100)
	c.Lease = first(c.Lease, 30*time.Second)
	c.LongestHold = first(c.LongestHold, 12*time.Hour)
	c.Poll = first(c.Poll, 500*time.Millisecond)
	c.Handlers = maps.Clone(c.Handlers)
	for kind, handler := range c.Handlers {
		handler.Lease = first(handler.Lease, c.Lease)
		c.Handlers[kind] = handler
	}
	c.Drain = first(c.Drain, min(someDrain, c.shortestLease()))
	if c.Name == "" {
		c.Name = cmp.Or(c.Credential.Name(), host())
	}
	return c
}

func (c Config) shortestLease() time.Duration {
	shortest := c.Lease
	for _, handler := range c.Handlers {
		shortest = min(shortest, handler.Lease)
	}
	return shortest
}

func (c Config) kinds() []string { return slices.Sorted(maps.Keys(c.Handlers)) }

// check finds every problem of a Config with its defaults.
func (c Config) check() error {
	var found refusal.Problems
	found.Between("Slots", c.Slots, 1, maxSlots)
	found.Between("Batch", c.Batch, 1, maxBatch)
	checkLease(&found, "Lease", c.Lease, c)
	found.Lasting("LongestHold", c.LongestHold, 0, maxHold)
	found.Lasting("Poll", c.Poll, minPoll, maxPoll)
	if c.Drain < 0 {
		found.Addf("Drain", "is negative: %v", c.Drain)
	} else if shortest := c.shortestLease(); c.Drain > shortest {
		found.Addf("Drain", "of %v must not exceed the shortest Lease of %v", c.Drain, shortest)
	}
	if c.Grace < 0 {
		found.Addf("Grace", "is negative: %v", c.Grace)
	} else if shortest := c.shortestLease(); c.Grace > shortest/3 {
		found.Addf("Grace", "of %v must not exceed a third of the shortest Lease of %v", c.Grace, shortest)
	}
	if strings.TrimSpace(c.Name) == "" || len(c.Name) > maxName || !utf8.ValidString(c.Name) || strings.ContainsRune(c.Name, 0) {
		found.Addf("Name", "is blank, longer than %d bytes, or no text", maxName)
	}
	if !c.Credential.IsZero() && c.Name != c.Credential.Name() {
		found.Addf("Name", "is not that of the Credential, by which the worker is known")
	}
	for _, kind := range c.kinds() {
		c.Handlers[kind].check(fmt.Sprintf("Handlers[%q].", kind), c, &found)
	}
	return found.Err()
}

func (h Handler) check(prefix string, c Config, found *refusal.Problems) {
	switch {
	case h.Do == nil && h.DoResult == nil:
		found.Addf(prefix+"Do", "is nil, and so is DoResult")
	case h.Do != nil && h.DoResult != nil:
		found.Addf(prefix+"DoResult", "is set beside Do")
	}
	if h.Lease != c.Lease {
		checkLease(found, prefix+"Lease", h.Lease, c)
	}
	if h.MaxAge < 0 {
		found.Addf(prefix+"MaxAge", "is negative: %v", h.MaxAge)
	}
	if h.Timeout < 0 {
		found.Addf(prefix+"Timeout", "is negative: %v", h.Timeout)
	} else if h.Timeout > c.LongestHold {
		found.Addf(prefix+"Timeout", "of %v must not exceed the LongestHold of %v", h.Timeout, c.LongestHold)
	}
	if h.UnknownOnTimeout && h.Timeout == 0 {
		found.Addf(prefix+"UnknownOnTimeout", "needs a Timeout")
	}
}

func checkLease(found *refusal.Problems, field string, lease time.Duration, c Config) {
	found.Lasting(field, lease, minLease, db.LongestLease)
	if lease > c.LongestHold {
		found.Addf(field, "of %v must not exceed the LongestHold of %v", lease, c.LongestHold)
	}
}

// host is the name of this machine, or a word for one that has none.
func host() string {
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "unknown host"
}

func first[T comparable](value, otherwise T) T {
	var zero T
	if value != zero {
		return value
	}
	return otherwise
}
