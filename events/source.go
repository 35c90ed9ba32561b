package events

import (
	"context"
	"fmt"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// Source reads the event that a message was derived from: the one that has both the message's SourcePosition and its SourceEventID, in its
// tenant; else ErrSourceNotFound. Any other error comes from the database and is retryable.
func (l *Log) Source(ctx context.Context, m outbox.Message) (Event, error) {
	if err := ctx.Err(); err != nil {
		return Event{}, failed("source", err)
	}
	if m.SourcePosition == 0 {
		return Event{}, failed("source", fmt.Errorf("%w: message %d was derived from no event", ErrSourceNotFound, m.ID))
	}
	rows, err := l.store.ReadSource(ctx, db.ReadSourceParams{Position: m.SourcePosition, EventID: m.SourceEventID, Tenant: m.Tenant})
	switch {
	case err != nil:
		return Event{}, failed("source", err)
	case len(rows) == 0:
		return Event{}, failed("source", fmt.Errorf("%w: message %d names event %q at position %d", ErrSourceNotFound, m.ID, m.SourceEventID, m.SourcePosition))
	}
	return l.eventOf(rows[0]), nil
}

// A Decoder reads the payload of one type of event. Make one with DecoderOf and register it in Config.Decoders.
type Decoder struct {
	eventType string
	decode    any // func(Event) (T, error)
}

// DecoderOf makes a decoder of a type of event.
func DecoderOf[T any](eventType string, decode func(Event) (T, error)) Decoder {
	if decode == nil {
		return Decoder{eventType: eventType}
	}
	return Decoder{eventType: eventType, decode: decode}
}

// Decode reads an event's payload by the decoder registered for its type, whose error it passes through. ErrNoDecoder: none is
// registered, or one of another result than T.
func Decode[T any](l *Log, e Event) (T, error) {
	decode, ok := l.decoders[e.Type].decode.(func(Event) (T, error))
	if !ok {
		var none T
		return none, failed("decode", fmt.Errorf("%w of %q as %T", ErrNoDecoder, e.Type, none))
	}
	return decode(e)
}

// SourceAs is Source and Decode in one.
func SourceAs[T any](ctx context.Context, l *Log, m outbox.Message) (T, Event, error) {
	e, err := l.Source(ctx, m)
	if err != nil {
		var none T
		return none, e, err
	}
	result, err := Decode[T](l, e)
	return result, e, err
}
