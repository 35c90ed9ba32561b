package sqlitedb

import (
	"context"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// AppendEvents implements db.Appender.
func (s *Store) AppendEvents(ctx context.Context, tx db.Tx, arg db.AppendEventsParams) ([]db.AppendEventsRow, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]db.AppendEventsRow, error) {
		rows := make([]db.AppendEventsRow, len(arg.EventIds))
		for i := range rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			positions, err := q.AppendEvent(whole, gen.AppendEventParams{
				RecordedAt: now, Tenant: arg.Tenants[i], Stream: arg.Streams[i], Type: arg.Types[i], EventID: arg.EventIds[i],
				Digest: arg.Digests[i], Metadata: arg.Metadatas[i], Payload: arg.Payloads[i],
			})
			if err != nil {
				return nil, err
			}
			if len(positions) > 0 {
				rows[i] = db.AppendEventsRow{Position: positions[0], Stored: true}
			}
		}
		return rows, nil
	})
}

// FindEvents implements db.Appender.
func (s *Store) FindEvents(ctx context.Context, tx db.Tx, arg db.FindEventsParams) ([]db.FindEventsRow, error) {
	type asked struct {
		Tenant  string `json:"tenant"`
		EventID string `json:"event_id"`
		Digest  string `json:"digest"`
	}
	given := make([]asked, len(arg.EventIds))
	for i := range given {
		given[i] = asked{arg.Tenants[i], arg.EventIds[i], hexed(arg.Digests[i])}
	}
	return callers(ctx, s, tx, reads, func(whole context.Context, q *gen.Queries, _ int64) ([]db.FindEventsRow, error) {
		rows, err := q.FindEvents(whole, gen.FindEventsParams{Given: list(given)})
		return convert(rows, err, func(row gen.FindEventsRow) db.FindEventsRow { return db.FindEventsRow(row) })
	})
}

// SaveReader implements db.Appender.
func (s *Store) SaveReader(ctx context.Context, tx db.Tx, arg db.SaveReaderParams) ([]db.SaveReaderRow, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]db.SaveReaderRow, error) {
		current, err := q.AdoptStream(whole)
		if err != nil || !slices.Contains(current, arg.Incarnation) {
			return []db.SaveReaderRow{{}}, err
		}
		names, err := q.SaveReaderOn(whole, gen.SaveReaderOnParams{
			Name: arg.Name, Incarnation: arg.Incarnation, TransactionID: arg.TransactionID, Position: arg.Position, Digest: arg.Digest, SavedAt: now,
			FromTransactionID: arg.FromTransactionID, FromPosition: arg.FromPosition,
		})
		if err == nil && len(names) == 0 && arg.FromPosition == 0 {
			names, err = q.SaveReaderNew(whole, gen.SaveReaderNewParams{
				Name: arg.Name, Incarnation: arg.Incarnation, TransactionID: arg.TransactionID, Position: arg.Position, Digest: arg.Digest, SavedAt: now,
			})
		}
		return []db.SaveReaderRow{{Saved: len(names) > 0, Known: true}}, err
	})
}
