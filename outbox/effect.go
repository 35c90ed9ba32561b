package outbox

import (
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/internal/bounds"
)

// An Effect is what a producer records. Texts are compared bytewise and stored as given; a blank one is refused, where it may be empty
// too. All bounds are in bytes.
type Effect struct {
	// Tenant scopes the effect; "" for single-tenant use. At most 128.
	Tenant string
	// Consumer and Target name who performs the effect and where. At most 128 each.
	Consumer, Target string
	// Kind is the type of effect, from a small set fixed in code. At most 128.
	Kind string
	// Key is the effect's identity within (Tenant, Consumer) for as long as its message is retained: the same key again is a duplicate when
	// Target, Kind, OrderKey, Payload and Metadata are the same too, and a conflict when they are not. At most 255.
	Key string
	// OrderKey, if not empty, makes effects of one (Tenant, Consumer, Target, OrderKey) run one at a time, in the order of message id. At
	// most 128.
	OrderKey string
	// Payload is stored byte for byte. Nil is stored as empty. At most Config.MaxPayload.
	Payload []byte
	// Metadata travels with the payload. At most 64 entries and 8 KiB, names and values together; traceparent, tracestate and baggage are
	// the library's (Observer.Propagate).
	Metadata map[string]string
	// Priority orders the lanes of one tenant: higher comes first. Default 0.
	Priority int16
	// Delay or DueAt, not both, say when the effect is first due; by default at once. DueAt lies between the years 2000 and 9999; in the
	// past it means now. It is kept to the microsecond.
	Delay time.Duration
	DueAt time.Time
	// MaxAge, counted from when the effect is first due, is how old it may be when it is performed. Zero is the box's (Config.Policy), 24 h
	// by default; NoMaxAge is none; at most 100 years. A consumer's policy can only shorten it.
	MaxAge time.Duration
	// SourcePosition and SourceEventID name the fact the effect was derived from, if any. Not negative; at most 64.
	SourcePosition int64
	SourceEventID  string
}

var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	forever  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// checkEffect finds everything wrong with an effect, so that no statement fails on it inside the caller's transaction.
func (b *Box) checkEffect(found *problems, e Effect) {
	found.optionalName("Tenant", e.Tenant, maxName)
	found.name("Consumer", e.Consumer, maxName)
	found.name("Target", e.Target, maxName)
	found.name("Kind", e.Kind, maxName)
	if len(b.kinds) > 0 && !slices.Contains(b.kinds, e.Kind) {
		found.add("Kind", "is none of the box's kinds")
	}
	found.required("Key", e.Key, maxKey)
	found.optional("OrderKey", e.OrderKey, maxName)
	bounds.CheckPayload(e.Payload, b.maxPayload, found.on("Payload"))
	bounds.CheckMetadata(e.Metadata, found.add)
	if e.Delay < 0 {
		found.addf("Delay", "is negative: %v", e.Delay)
	}
	if !e.DueAt.IsZero() {
		if e.Delay != 0 {
			found.add("DueAt", "is set beside Delay; use one of them")
		}
		if e.DueAt.Before(earliest) || e.DueAt.After(forever) {
			found.add("DueAt", "is not between the years 2000 and 9999")
		}
	}
	found.age("MaxAge", e.MaxAge)
	if e.SourcePosition < 0 {
		found.addf("SourcePosition", "is negative: %d", e.SourcePosition)
	}
	found.text("SourceEventID", e.SourceEventID, bounds.EventID)
}
