package outbox

import (
	"time"
)

// An Effect is what a producer records. Texts are compared bytewise and stored as given; blank ones are refused, where they may be empty
// too. All bounds are in bytes.
type Effect struct {
	// Tenant scopes the effect; "" for single-tenant use. At most 128.
	Tenant string
	// Consumer and Target name who performs the effect and where. At most 128 each.
	Consumer, Target string
	// Kind is the type of effect, from a small set fixed in code. At most 128.
	Kind string
	// Key is the effect's identity within (Tenant, Consumer) for as long as its message is retained. At most 255.
	Key string
	// OrderKey, if not empty, makes effects of one (Tenant, Consumer, Target, OrderKey) run one at a time, in the order of message id. At
	// most 128.
	OrderKey string
	// Payload is stored byte for byte. Nil is stored as empty. At most Config.MaxPayload.
	Payload []byte
	// Metadata travels with the payload. At most 64 entries and 8 KiB, keys and values together; traceparent, tracestate and baggage are the
	// library's.
	Metadata map[string]string
	// Priority orders the lanes of one tenant: higher comes first. Default 0.
	Priority int16
	// Delay or DueAt, not both, say when the effect is first due; by default at once. DueAt in the past means now. Between the years 2000
	// and 9999.
	Delay time.Duration
	DueAt time.Time
	// MaxAge, counted from when the effect is first due, is how old it may be when it is performed. Zero is the box's (Config.Policy), 24 h
	// by default; NoMaxAge is none; at most 100 years. A consumer's policy can only shorten it.
	MaxAge time.Duration
	// SourcePosition and SourceEventID name the fact the effect was derived from, if any. Not negative; at most 64.
	SourcePosition int64
	SourceEventID  string
}

// A Receipt is what became of one effect.
type Receipt struct {
	// ID of the message: the new one, or the one that has the key. 0 when Suppressed.
	ID int64
	// Status is Recorded, Duplicate, Conflicted or Suppressed.
	Status Status
	// State of the message; empty when Suppressed.
	State State

	box *Box
}
