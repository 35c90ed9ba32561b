package janitor

import (
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// KeepForever is a retention that never ends.
const KeepForever = time.Duration(1<<63 - 1)

// Config of a Janitor. Zero fields take their defaults; negative ones are refused.
type Config struct {
	// Delivered, Dead, Cancelled and Expired say for how long settled messages are kept. Default 7 days for delivered ones, 30 days for the
	// others. At least a minute, or KeepForever.
	Delivered, Dead, Cancelled, Expired time.Duration
	// Audit says for how long operators' acts are kept. Default 365 days. At least a minute, or KeepForever.
	Audit time.Duration
	// Events says for how long events are kept. Default KeepForever; else at least a minute. Events are never removed beyond what a named reader
	// of them has yet to read, unless ForceEvents is set. The stream is one of all tenants, so that this needs outbox.AllTenants as Scope.
	Events      time.Duration
	ForceEvents bool
	// Claims says for how long claims are kept in the ledger after they ended, or after the time of a holder ran out whom nobody took over from;
	// receipts of a bus's handlers among them, which stay as long as the event may still be delivered, dead ones by a replay. Default 60 days, or
	// Dead if that is longer. At least Dead, or KeepForever.
	Claims time.Duration
	// Batches says for how long batches are kept after they were completed, with what became of each of their rows. Default 30 days, or Dead
	// if that is longer, since a replay of a dead message opens its batch again. At least a minute, or KeepForever.
	Batches time.Duration
	// Grace is for how long after its maximum age a message that nobody ever leased is left pending, so that a sender which was down finds
	// it and says why it died. Default 24 h; at least a minute.
	Grace time.Duration
	// Scope is whose messages are purged, expired and measured. Default: the tenant "" alone.
	Scope outbox.Scope

	// Every is how often Run purges. Default 1 minute, between 1 s and 24 h.
	Every time.Duration
	// Measure is how often Run reads what waits and tells Observer.Measured. Default 15 s, between 1 s and 24 h.
	Measure time.Duration
	// Batch is how many rows one statement looks at. Default and at most 1,000. A statement that times out is repeated with half of it.
	Batch int
	// Pause follows each statement that removed something. Default 20 ms; NoPause for none; at most a minute.
	Pause time.Duration
	// Timeout of one statement, its wait for a connection included. Default 5 s, between 100 ms and 1 h.
	Timeout time.Duration
}

// NoPause lets the statements follow each other at once.
const NoPause = time.Duration(-1 << 63)

const (
	day       = 24 * time.Hour
	shortest  = time.Minute // of what is kept: less is a number without its unit
	mostBatch = 1_000
)

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	for field, otherwise := range map[*time.Duration]time.Duration{
		&c.Delivered: 7 * day, &c.Dead: 30 * day, &c.Cancelled: 30 * day, &c.Expired: 30 * day, &c.Audit: 365 * day,
		&c.Events: KeepForever, &c.Grace: day, &c.Every: time.Minute, &c.Measure: 15 * time.Second, &c.Pause: 20 * time.Millisecond, &c.Timeout: 5 * time.Second,
	} {
		if *field == 0 {
			*field = otherwise
		}
	}
	if c.Claims == 0 {
		c.Claims = max(60*day, c.Dead)
	}
	if c.Batches == 0 {
		c.Batches = max(30*day, c.Dead)
	}
	if c.Batch == 0 {
		c.Batch = mostBatch
	}
	return c
}

// check finds every problem of a Config with its defaults.
func (c Config) check() error {
	var found refusal.Problems
	kept := func(field string, value time.Duration) {
		if value < shortest {
			found.Addf(field, "is %v, must be at least %v; KeepForever keeps for ever", value, shortest)
		}
	}
	kept("Delivered", c.Delivered)
	kept("Dead", c.Dead)
	kept("Cancelled", c.Cancelled)
	kept("Expired", c.Expired)
	kept("Audit", c.Audit)
	kept("Events", c.Events)
	if c.Events != KeepForever && !c.Scope.All() {
		found.Add("Events", "are those of all tenants: they are purged with Scope outbox.AllTenants only")
	}
	kept("Claims", c.Claims)
	if c.Claims < c.Dead {
		found.Addf("Claims", "is %v, must be at least as long as Dead, %v: a dead message that is replayed relies on its receipts", c.Claims, c.Dead)
	}
	kept("Batches", c.Batches)
	kept("Grace", c.Grace)
	found.Lasting("Every", c.Every, time.Second, day)
	found.Lasting("Measure", c.Measure, time.Second, day)
	found.Lasting("Timeout", c.Timeout, 100*time.Millisecond, time.Hour)
	if c.Pause != NoPause {
		found.Lasting("Pause", c.Pause, 0, time.Minute)
	}
	found.Between("Batch", c.Batch, 1, mostBatch)
	return found.Err()
}
