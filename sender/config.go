package sender

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/db"
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

	// Listen wakes the sender by the database's notifications, over a connection of its own that the store is configured with. A store
	// without one is logged, and the poll serves.
	Listen bool
	// Notify runs the box's notifier: other processes hear of what is committed through this box. One sender of a box is enough.
	Notify bool

	// Name is the worker's label for operators; two may have the same. Default: the host's name. At most 128 bytes.
	Name string
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
		c.Name = host()
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
	var found problems
	found.between("Slots", c.Slots, 1, maxSlots)
	found.between("Batch", c.Batch, 1, maxBatch)
	found.lease("Lease", c.Lease, c)
	found.lasting("LongestHold", c.LongestHold, 0, maxHold)
	found.lasting("Poll", c.Poll, minPoll, maxPoll)
	if c.Drain < 0 {
		found.addf("Drain", "is negative: %v", c.Drain)
	} else if shortest := c.shortestLease(); c.Drain > shortest {
		found.addf("Drain", "of %v must not exceed the shortest Lease of %v", c.Drain, shortest)
	}
	if strings.TrimSpace(c.Name) == "" || len(c.Name) > maxName || !utf8.ValidString(c.Name) || strings.ContainsRune(c.Name, 0) {
		found.addf("Name", "is blank, longer than %d bytes, or no text", maxName)
	}
	for _, kind := range c.kinds() {
		c.Handlers[kind].check(fmt.Sprintf("Handlers[%q].", kind), c, &found)
	}
	return found.err()
}

func (h Handler) check(prefix string, c Config, found *problems) {
	switch {
	case h.Do == nil && h.DoResult == nil:
		found.addf(prefix+"Do", "is nil, and so is DoResult")
	case h.Do != nil && h.DoResult != nil:
		found.addf(prefix+"DoResult", "is set beside Do")
	}
	if h.Lease != c.Lease {
		found.lease(prefix+"Lease", h.Lease, c)
	}
	if h.MaxAge < 0 {
		found.addf(prefix+"MaxAge", "is negative: %v", h.MaxAge)
	}
	if h.Timeout < 0 {
		found.addf(prefix+"Timeout", "is negative: %v", h.Timeout)
	} else if h.Timeout > c.LongestHold {
		found.addf(prefix+"Timeout", "of %v must not exceed the LongestHold of %v", h.Timeout, c.LongestHold)
	}
	if h.UnknownOnTimeout && h.Timeout == 0 {
		found.addf(prefix+"UnknownOnTimeout", "needs a Timeout")
	}
}

// problems are all that is wrong with one Config.
type problems []error

func (p *problems) addf(field, format string, args ...any) {
	*p = append(*p, &outbox.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func (p problems) Error() string {
	texts := make([]string, len(p))
	for i, err := range p {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (p problems) Unwrap() []error { return p }

func (p *problems) between(field string, value, least, most int) {
	if value < least || value > most {
		p.addf(field, "is %d, not between %d and %d", value, least, most)
	}
}

func (p *problems) lasting(field string, value, least, most time.Duration) {
	if value < least || value > most {
		p.addf(field, "is %v, not between %v and %v", value, least, most)
	}
}

func (p *problems) lease(field string, lease time.Duration, c Config) {
	p.lasting(field, lease, minLease, db.LongestLease)
	if lease > c.LongestHold {
		p.addf(field, "of %v must not exceed the LongestHold of %v", lease, c.LongestHold)
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
