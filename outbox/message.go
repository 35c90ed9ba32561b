package outbox

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A Message is a stored effect under a lease, as the worker that holds the lease sees it. It is immutable: copies of it share Payload and
// Metadata, which nobody may change. All instants are the database's, in UTC.
type Message struct {
	ID                     int64
	Tenant                 string
	Consumer, Target, Kind string
	// Key identifies the effect within (Tenant, Consumer), across attempts and replays: hand it downstream as the idempotency key.
	Key string
	// OrderKey is empty for a message that may run beside any other.
	OrderKey string
	Priority int16
	// Payload is what the producer stored, byte for byte. Nil and empty both come back empty, never nil.
	Payload []byte
	// Metadata is nil when there is none.
	Metadata map[string]string
	// SourcePosition and SourceEventID name the fact the effect was derived from; zero when there is none.
	SourcePosition int64
	SourceEventID  string
	CreatedAt      time.Time
	// DueAt is when the message last came due.
	DueAt time.Time

	// Attempt counts leases from one, since creation or since a replay that reset it, without those given back unspent.
	Attempt int
	// Epoch rises by one at each lease and is never reset. See Fence.
	Epoch int64
	// Replays counts how often an operator brought the message back from the dead.
	Replays int
	// Unsure says that an earlier attempt may have performed the effect: its outcome was unknown, or its lease was lost.
	Unsure bool
	// LeasedUntil is when the lease ends unless it is renewed.
	LeasedUntil time.Time

	token [16]byte
}

// A Fence orders the leases of one message: a downstream system that remembers the highest Epoch it saw of a MessageID can refuse a
// worker whose lease was lost.
type Fence struct {
	MessageID int64
	Epoch     int64
}

// Fence is what to hand downstream.
func (m Message) Fence() Fence { return Fence{MessageID: m.ID, Epoch: m.Epoch} }

// Lane is the lane the message came from.
func (m Message) Lane() Lane { return Lane{Kind: m.Kind, Tenant: m.Tenant, Priority: m.Priority} }

// String identifies the message without its payload, metadata or token, so that none of them reaches a log by accident.
func (m Message) String() string {
	return fmt.Sprintf("message %d %s/%s %s %q attempt %d epoch %d", m.ID, m.Consumer, m.Target, m.Kind, m.Key, m.Attempt, m.Epoch)
}

// GoString is String.
func (m Message) GoString() string { return m.String() }

// LogValue is what slog prints: as String, in fields.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("id", m.ID),
		slog.String("tenant", m.Tenant),
		slog.String("consumer", m.Consumer),
		slog.String("target", m.Target),
		slog.String("kind", m.Kind),
		slog.String("key", m.Key),
		slog.Int("attempt", m.Attempt),
		slog.Int64("epoch", m.Epoch),
	)
}

// leased says whether the message came from a lease: a message made by hand carries the token of a free row.
func (m Message) leased() bool { return m.token != [16]byte(db.FreeToken) }
