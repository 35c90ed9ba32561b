package memdb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

type eventKey struct{ tenant, id string }

type readerKey struct{ name string }

// AppendEvents implements db.Appender.
func (s *Store) AppendEvents(ctx context.Context, tx db.Tx, arg db.AppendEventsParams) ([]db.AppendEventsRow, error) {
	return in(ctx, s, "AppendEvents", tx, arg, func(tx *Tx) ([]db.AppendEventsRow, error) { return tx.append(ctx, arg) })
}

func (tx *Tx) append(ctx context.Context, arg db.AppendEventsParams) ([]db.AppendEventsRow, error) {
	st := &statement{Store: tx.store, now: clock()}
	if !st.parallel(len(arg.Tenants), len(arg.Streams), len(arg.Types), len(arg.EventIds), len(arg.Digests), len(arg.Metadatas), len(arg.Payloads)) {
		return nil, st.err
	}
	if tx.number == 0 {
		tx.store.lastTx++
		tx.number = tx.store.lastTx
	}
	given := make([]tables.Event, len(arg.EventIds))
	for i := range given {
		tx.store.lastEvent++
		given[i] = tables.Event{
			Position: tx.store.lastEvent, TransactionID: tx.number, RecordedAt: st.now, Tenant: arg.Tenants[i], Stream: arg.Streams[i],
			Type: arg.Types[i], EventID: arg.EventIds[i], Digest: exact(arg.Digests[i]), Metadata: arg.Metadatas[i], Payload: exact(arg.Payloads[i]),
		}
		if arg.Payloads[i] == nil { // which a driver sends as NULL
			st.fail(&CheckError{"event", "payload not null"})
		}
		st.fail(verify("event", eventChecks, given[i]))
	}
	if st.err != nil {
		return nil, st.err
	}
	rows := make([]db.AppendEventsRow, len(given))
	for i, e := range given {
		rows[i].Position = e.Position
	}
	inOrder := slices.Clone(given)
	slices.SortFunc(inOrder, func(a, b tables.Event) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Position, b.Position))
	})
	for _, e := range inOrder {
		key := eventKey{e.Tenant, e.EventID}
		if err := tx.lock(ctx, key); err != nil {
			return nil, err
		}
		if _, taken := tx.event(key); taken {
			continue
		}
		tx.events = append(tx.events, e)
		rows[e.Position-given[0].Position].Stored = true
	}
	return rows, nil
}

// event finds the event of a key, as this transaction sees it.
func (tx *Tx) event(key eventKey) (tables.Event, bool) {
	for _, e := range tx.events {
		if (eventKey{e.Tenant, e.EventID}) == key {
			return e, true
		}
	}
	for _, e := range tx.store.events.rows {
		if (eventKey{e.Tenant, e.EventID}) == key {
			return e, true
		}
	}
	return tables.Event{}, false
}

// FindEvents implements db.Appender.
func (s *Store) FindEvents(ctx context.Context, tx db.Tx, arg db.FindEventsParams) ([]db.FindEventsRow, error) {
	return in(ctx, s, "FindEvents", tx, arg, func(tx *Tx) ([]db.FindEventsRow, error) {
		st := &statement{Store: s, now: clock()}
		if !st.parallel(len(arg.Tenants), len(arg.EventIds), len(arg.Digests)) {
			return nil, st.err
		}
		rows := []db.FindEventsRow{}
		for i, id := range arg.EventIds {
			if e, found := tx.event(eventKey{arg.Tenants[i], id}); found {
				same := bytes.Equal(e.Digest, arg.Digests[i])
				rows = append(rows, db.FindEventsRow{Ordinal: int32(i + 1), Position: e.Position, SameDigest: same})
			}
		}
		return rows, nil
	})
}

// SaveReader implements db.Appender.
func (s *Store) SaveReader(ctx context.Context, tx db.Tx, arg db.SaveReaderParams) ([]db.SaveReaderRow, error) {
	return in(ctx, s, "SaveReader", tx, arg, func(tx *Tx) ([]db.SaveReaderRow, error) {
		if arg.Incarnation != incarnation {
			return []db.SaveReaderRow{{}}, nil
		}
		if err := tx.lock(ctx, readerKey{arg.Name}); err != nil {
			return nil, err
		}
		stands, exists := tx.readers[arg.Name]
		if !exists {
			stands, exists = s.readers.rows[arg.Name]
		}
		if exists && (stands.TransactionID != arg.FromTransactionID || stands.Position != arg.FromPosition) || !exists && arg.FromPosition != 0 {
			return []db.SaveReaderRow{{Known: true}}, nil
		}
		r := tables.Reader{
			Name: arg.Name, Incarnation: arg.Incarnation, TransactionID: arg.TransactionID, Position: arg.Position, Digest: exact(arg.Digest),
			SavedAt: time.Now().UTC().Truncate(time.Microsecond),
		}
		if err := verify("reader", readerChecks, r); err != nil {
			return nil, err
		}
		tx.readers[arg.Name] = r
		return []db.SaveReaderRow{{Saved: true, Known: true}}, nil
	})
}
