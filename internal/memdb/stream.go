package memdb

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// incarnation is that of every store here: none was restored from anything.
const incarnation = "00000000000000000000000000000001"

func byTransaction(a, b tables.Event) int {
	return cmp.Or(cmp.Compare(a.TransactionID, b.TransactionID), cmp.Compare(a.Position, b.Position))
}

// stream is what is below the oldest open transaction that has written, in order.
func (st *statement) stream() []tables.Event {
	horizon := st.lastTx + 1
	for tx := range st.open {
		if tx.number != 0 {
			horizon = min(horizon, tx.number)
		}
	}
	return slices.SortedFunc(where(maps.Values(st.events.rows), func(e tables.Event) bool { return e.TransactionID < horizon }), byTransaction)
}

// standing judges a place in the stream.
func (st *statement) standing(arg db.ReadEventsParams) int16 {
	place := tables.Event{TransactionID: arg.AfterTransactionID, Position: arg.AfterPosition}
	at, there := st.events.rows[arg.AfterPosition]
	switch {
	case arg.Incarnation == "":
		return db.StandingGood
	case arg.Incarnation != incarnation:
		return db.StandingUnknown
	case byTransaction(st.purged, place) > 0:
		return db.StandingExpired
	case st.purged.Position == arg.AfterPosition && bytes.Equal(st.purged.Digest, arg.AfterDigest),
		there && at.TransactionID == arg.AfterTransactionID && bytes.Equal(at.Digest, arg.AfterDigest):
		return db.StandingGood
	}
	return db.StandingUnknown
}

// ReadEvents implements db.Streamer.
func (s *Store) ReadEvents(ctx context.Context, arg db.ReadEventsParams) ([]db.ReadEventsRow, error) {
	return run(ctx, s, "ReadEvents", arg, func(st *statement) []db.ReadEventsRow {
		place := tables.Event{TransactionID: arg.AfterTransactionID, Position: arg.AfterPosition, Digest: arg.AfterDigest}
		closing := db.ReadEventsRow{Incarnation: incarnation, Standing: st.standing(arg), Closing: true}
		var seen []tables.Event
		if closing.Standing == db.StandingGood {
			after := slices.DeleteFunc(st.stream(), func(e tables.Event) bool { return byTransaction(e, place) <= 0 })
			seen = first(after, arg.Examine)
		}
		rows, size := []db.ReadEventsRow{}, int64(0)
		for i, e := range seen {
			if !inScope(arg.AllTenants, arg.Scope, e.Tenant) || !oneOrAny(arg.Types, e.Type) || !oneOrAny(arg.Streams, e.Stream) {
				continue
			}
			if len(rows) == int(arg.MaxRows) || len(rows) > 0 && size >= arg.MaxBytes {
				seen = seen[:i]
				break
			}
			size += int64(len(e.Payload))
			rows = append(rows, db.ReadEventsRow{
				Position: e.Position, TransactionID: e.TransactionID, RecordedAt: e.RecordedAt, Tenant: e.Tenant, Stream: e.Stream,
				Type: e.Type, EventID: e.EventID, Digest: e.Digest, Metadata: e.Metadata, Payload: e.Payload,
			})
		}
		switch {
		case len(seen) > 0:
			place = seen[len(seen)-1]
		case arg.AfterPosition == 0:
			place = st.purged
		}
		closing.Position, closing.TransactionID, closing.Digest = place.Position, place.TransactionID, place.Digest
		closing.RecordedAt = db.Never
		return append(rows, closing)
	})
}

func oneOrAny(wanted []string, value string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// ReadEnd implements db.Streamer.
func (s *Store) ReadEnd(ctx context.Context) ([]db.ReadEndRow, error) {
	return run(ctx, s, "ReadEnd", nil, func(st *statement) []db.ReadEndRow {
		last := st.purged
		if all := st.stream(); len(all) > 0 {
			last = all[len(all)-1]
		}
		return []db.ReadEndRow{{Position: last.Position, TransactionID: last.TransactionID, Digest: last.Digest, Incarnation: incarnation}}
	})
}

// ReadSource implements db.Streamer.
func (s *Store) ReadSource(ctx context.Context, arg db.ReadSourceParams) ([]db.ReadSourceRow, error) {
	return run(ctx, s, "ReadSource", arg, func(st *statement) []db.ReadSourceRow {
		e, found := st.events.rows[arg.Position]
		if !found || e.EventID != arg.EventID || e.Tenant != arg.Tenant {
			return []db.ReadSourceRow{}
		}
		return []db.ReadSourceRow{{
			Position: e.Position, TransactionID: e.TransactionID, RecordedAt: e.RecordedAt, Tenant: e.Tenant, Stream: e.Stream,
			Type: e.Type, EventID: e.EventID, Digest: e.Digest, Metadata: e.Metadata, Payload: e.Payload,
		}}
	})
}

// AdoptStream implements db.Streamer.
func (s *Store) AdoptStream(ctx context.Context) ([]string, error) {
	return run(ctx, s, "AdoptStream", nil, func(*statement) []string { return []string{incarnation} })
}

// FindReaders implements db.Streamer.
func (s *Store) FindReaders(ctx context.Context, arg db.FindReadersParams) ([]db.FindReadersRow, error) {
	return run(ctx, s, "FindReaders", arg, func(st *statement) []db.FindReadersRow {
		rows := []db.FindReadersRow{}
		for _, r := range st.readers.sorted(func(a, b tables.Reader) int { return cmp.Compare(a.Name, b.Name) }) {
			if len(rows) < int(arg.MaxRows) && (arg.AllNames || slices.Contains(arg.Names, r.Name)) && r.Name > arg.AfterName {
				rows = append(rows, db.FindReadersRow{
					Name: r.Name, Incarnation: r.Incarnation, TransactionID: r.TransactionID, Position: r.Position, Digest: r.Digest, SavedAt: r.SavedAt,
				})
			}
		}
		return rows
	})
}

// RemoveReader implements db.Streamer.
func (s *Store) RemoveReader(ctx context.Context, arg db.RemoveReaderParams) ([]string, error) {
	return run(ctx, s, "RemoveReader", arg, func(st *statement) []string {
		if _, found := st.readers.rows[arg.Name]; !found {
			return []string{}
		}
		st.readers.remove(st, arg.Name)
		return []string{arg.Name}
	})
}

// PurgeEvents implements db.Purger.
func (s *Store) PurgeEvents(ctx context.Context, arg db.PurgeEventsParams) ([]db.PurgeEventsRow, error) {
	return run(ctx, s, "PurgeEvents", arg, func(st *statement) []db.PurgeEventsRow {
		var removed int64
		cutoff := after(st.now, -arg.Keep)
		for _, e := range first(st.stream(), arg.MaxRows) {
			behind := func(r tables.Reader) bool {
				return byTransaction(tables.Event{TransactionID: r.TransactionID, Position: r.Position}, e) < 0
			}
			if !e.RecordedAt.Before(cutoff) || !arg.Force && slices.ContainsFunc(slices.Collect(maps.Values(st.readers.rows)), behind) {
				break
			}
			st.events.remove(st, e.Position)
			st.purged = e
			removed++
		}
		return []db.PurgeEventsRow{{Removed: removed}}
	})
}
