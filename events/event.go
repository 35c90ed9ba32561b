package events

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"time"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
)

// An Event is a fact: something that happened, written once and never changed. Texts are compared bytewise and stored as given; a blank one is
// refused, where it may be empty too. All bounds are in bytes.
type Event struct {
	// ID identifies the event within Tenant for as long as it is retained: appending the same ID again is a duplicate when everything else is
	// the same, and a conflict when it is not. Empty: Append draws a UUIDv7. At most 64.
	ID string
	// Tenant scopes the event; "" for single-tenant use. Effects derived from it have the same. At most 128.
	Tenant string
	// Stream names what the event is about, such as an order; may be empty. At most 128.
	Stream string
	// Type says what happened, from a small set fixed in code. At most 128.
	Type string
	// Payload is stored byte for byte. Nil is stored as empty. At most Config.MaxPayload.
	Payload []byte
	// Metadata travels with the payload. At most 64 entries and 8 KiB, names and values together; traceparent, tracestate and baggage are
	// the library's.
	Metadata map[string]string

	// Position is the event's number, which identifies it in this store; positions rise within a transaction, but the order of the stream is
	// that of Read. RecordedAt is when it was appended, by the database's clock. Both are set in an event that was read and ignored by Append.
	Position   int64
	RecordedAt time.Time

	cursor Cursor
}

// Cursor is the place after this event, for an event that was read from the stream; zero for any other.
func (e Event) Cursor() Cursor { return e.cursor }

// clone is the event for somebody who may change it.
func (e Event) clone() Event {
	e.Payload, e.Metadata = bytes.Clone(e.Payload), maps.Clone(e.Metadata)
	return e
}

// size is what the event takes in memory, in about so many bytes.
func (e Event) size() int {
	size := len(e.ID) + len(e.Tenant) + len(e.Stream) + len(e.Type) + len(e.Payload)
	for name, value := range e.Metadata {
		size += len(name) + len(value)
	}
	return size
}

// check finds everything wrong with an event.
func (e Event) check(found *refusal.Problems, maxPayload int) {
	bounds.CheckRequired(e.ID, bounds.EventID, found.On("ID"))
	bounds.CheckOptionalName(e.Tenant, bounds.Name, found.On("Tenant"))
	bounds.CheckOptional(e.Stream, bounds.Name, found.On("Stream"))
	bounds.CheckName(e.Type, bounds.Name, found.On("Type"))
	bounds.CheckPayload(e.Payload, maxPayload, found.On("Payload"))
	bounds.CheckMetadata(e.Metadata, found.Add)
}

// digest identifies an event with its content.
func (e Event) digest() [sha256.Size]byte {
	h := content.NewDigest()
	content.Write(h, []byte(e.Tenant), []byte(e.ID), []byte(e.Stream), []byte(e.Type), e.Payload)
	content.WriteMetadata(h, e.Metadata)
	return [sha256.Size]byte(h.Sum(nil))
}
