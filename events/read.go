package events

import (
	"context"
	"fmt"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	// examine is how many events one statement looks at, whatever the filter lets through.
	examine = 1_000
	// pageBytes bounds the payloads of a page: the event that reaches it is the last.
	pageBytes = 4 << 20
	// readTries bounds how often a stream is adopted that another process restores at the same time.
	readTries = 3
)

// A Filter says which events are read. The zero Filter is every type and stream of the tenant "" alone.
type Filter struct {
	// Scope is whose events; it is enforced in the database.
	Scope outbox.Scope
	// Types and Streams, if any, are the only ones. At most 1,000 each.
	Types, Streams []string
}

func (f Filter) check(found *refusal.Problems) {
	found.Scope(f.Scope)
	for field, names := range map[string][]string{"Types": f.Types, "Streams": f.Streams} {
		if len(names) > maxBatch {
			found.Addf(field, "has %d entries, at most %d are allowed", len(names), maxBatch)
		}
		for _, name := range names {
			bounds.CheckText(name, bounds.Name, found.On(field))
		}
	}
}

// A Page is a piece of the stream.
type Page struct {
	Events []Event
	// Next is where the stream goes on: after the last event, or after others that the filter left out.
	Next Cursor
}

// Read reads on after a cursor: at most limit events, in the order of the stream. That order is the same for every reader and every time, it is the
// order of appending within a transaction, and a transaction that began to write after another had committed comes after it. An event
// appears once no transaction is open that began to write before its own did, anywhere on the database server: from then on nothing can come
// before it, so that no reader misses an event. A long-running transaction that has written therefore holds the stream back for as long as it is
// open, and loses nothing.
//
// A page may be empty although more follows: it looks at no more than 1,000 events, and ends with the event that brings its payloads to 4 MiB.
// Read goes on from Next; at the end of the stream Next is the given cursor. A limit of 0 or less is an empty page without a
// statement; at most 1,000. Errors: outbox.ErrInvalid, ErrCursorUnknown, ErrCursorExpired, or one of the database, which is retryable.
func (l *Log) Read(ctx context.Context, after Cursor, limit int, filter Filter) (Page, error) {
	return l.read(ctx, after, limit, pageBytes, filter)
}

// read is Read with a bound of its own on the bytes of payload.
func (l *Log) read(ctx context.Context, after Cursor, limit int, bytes int64, filter Filter) (Page, error) {
	var found refusal.Problems
	filter.check(&found)
	if limit > maxBatch {
		found.Addf("limit", "is %d, at most %d are allowed", limit, maxBatch)
	}
	if err := found.Refused(ctx); err != nil {
		return Page{}, failed("read", err)
	}
	if limit <= 0 {
		return Page{Next: after}, nil
	}
	for range readTries {
		rows, err := l.store.ReadEvents(ctx, db.ReadEventsParams{
			Incarnation: after.incarnationText(), AfterTransactionID: after.transaction, AfterPosition: after.position, AfterDigest: after.digestBytes(),
			Examine: examine, MaxRows: int32(limit), MaxBytes: bytes,
			AllTenants: filter.Scope.All(), Scope: filter.Scope.Names(), Types: orNone(filter.Types), Streams: orNone(filter.Streams),
		})
		if err != nil {
			return Page{}, failed("read", err)
		}
		closing := rows[len(rows)-1]
		switch closing.Standing {
		case db.StandingUnknown:
			return Page{}, failed("read", ErrCursorUnknown)
		case db.StandingExpired:
			return Page{}, failed("read", ErrCursorExpired)
		case db.StandingRestored:
			if _, err := l.store.AdoptStream(ctx); err != nil {
				return Page{}, failed("read", err)
			}
			continue
		}
		page := Page{Next: cursorOf(closing.Incarnation, closing.TransactionID, closing.Position, closing.Digest)}
		for _, row := range rows[:len(rows)-1] {
			e := l.eventOf(db.ReadSourceRow{
				Position: row.Position, TransactionID: row.TransactionID, RecordedAt: row.RecordedAt, Tenant: row.Tenant, Stream: row.Stream,
				Type: row.Type, EventID: row.EventID, Digest: row.Digest, Metadata: row.Metadata, Payload: row.Payload,
			})
			e.cursor = cursorOf(closing.Incarnation, row.TransactionID, row.Position, row.Digest)
			page.Events = append(page.Events, e)
		}
		return page, nil
	}
	return Page{}, failed("read", fmt.Errorf("the stream is being restored: %w", db.ErrRetry))
}

// End is the place after which nothing is to be read yet: where a reader begins that wants only what is to come. Retryable.
func (l *Log) End(ctx context.Context) (Cursor, error) {
	for range readTries {
		if err := ctx.Err(); err != nil {
			return Cursor{}, failed("end", err)
		}
		rows, err := l.store.ReadEnd(ctx)
		if err != nil {
			return Cursor{}, failed("end", err)
		}
		if row := rows[0]; row.Standing == db.StandingGood {
			return cursorOf(row.Incarnation, row.TransactionID, row.Position, row.Digest), nil
		}
		if _, err := l.store.AdoptStream(ctx); err != nil {
			return Cursor{}, failed("end", err)
		}
	}
	return Cursor{}, failed("end", fmt.Errorf("the stream is being restored: %w", db.ErrRetry))
}

// eventOf is an event as it was read.
func (l *Log) eventOf(row db.ReadSourceRow) Event {
	metadata, ok := content.DecodeMetadata(row.Metadata)
	if !ok { // of a row written by hand, which must not hold up the stream
		l.box.Logger().Warn("metadata of an event is not a JSON object of strings", "position", row.Position)
	}
	return Event{
		ID: row.EventID, Tenant: row.Tenant, Stream: row.Stream, Type: row.Type, Payload: content.Bytes(row.Payload), Metadata: metadata,
		Position: row.Position, RecordedAt: row.RecordedAt.UTC(),
	}
}

func orNone(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
