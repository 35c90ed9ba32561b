package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// ReadEvents implements db.Streamer. The horizon is whatever is committed.
func (s *Store) ReadEvents(ctx context.Context, arg db.ReadEventsParams) ([]db.ReadEventsRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ReadEventsRow, error) {
		from, err := q.ReadEventsFrom(ctx, gen.ReadEventsFromParams{
			AfterPosition: arg.AfterPosition, Incarnation: arg.Incarnation, AfterTransactionID: arg.AfterTransactionID, AfterDigest: arg.AfterDigest,
		})
		if err != nil || len(from) == 0 {
			return nil, err
		}
		closing := db.ReadEventsRow{
			Position: arg.AfterPosition, TransactionID: arg.AfterTransactionID, Digest: arg.AfterDigest, RecordedAt: db.Never,
			Incarnation: from[0].ID, Standing: from[0].Standing, Closing: true,
		}
		if arg.AfterPosition == 0 {
			closing.Position, closing.TransactionID, closing.Digest = from[0].PurgedPosition, from[0].PurgedTransactionID, from[0].PurgedDigest
		}
		if closing.Standing != db.StandingGood {
			return []db.ReadEventsRow{closing}, nil
		}
		last, err := q.ReadEventsBound(ctx, gen.ReadEventsBoundParams{
			AfterPosition: arg.AfterPosition, Examine: int64(arg.Examine), AllTenants: arg.AllTenants, Scope: list(arg.Scope),
			Types: list(arg.Types), Streams: list(arg.Streams), MaxRows: int64(arg.MaxRows), MaxBytes: arg.MaxBytes,
		})
		if err != nil || len(last) == 0 {
			return []db.ReadEventsRow{closing}, err
		}
		closing.Position, closing.TransactionID, closing.Digest = last[0].Position, last[0].Position, last[0].Digest
		events, err := q.ReadEvents(ctx, gen.ReadEventsParams{
			AfterPosition: arg.AfterPosition, Bound: closing.Position, AllTenants: arg.AllTenants, Scope: list(arg.Scope),
			Types: list(arg.Types), Streams: list(arg.Streams),
		})
		rows, err := convert(events, err, func(row gen.OutboxEvent) db.ReadEventsRow {
			return db.ReadEventsRow{
				Position: row.Position, TransactionID: row.TransactionID, RecordedAt: instant(row.RecordedAt), Tenant: row.Tenant, Stream: row.Stream,
				Type: row.Type, EventID: row.EventID, Digest: row.Digest, Metadata: row.Metadata, Payload: row.Payload,
			}
		})
		return append(rows, closing), err
	})
}

// ReadEnd implements db.Streamer.
func (s *Store) ReadEnd(ctx context.Context) ([]db.ReadEndRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ReadEndRow, error) {
		rows, err := q.ReadEnd(ctx)
		return convert(rows, err, func(row gen.ReadEndRow) db.ReadEndRow {
			return db.ReadEndRow{Position: row.Position, TransactionID: row.TransactionID, Digest: row.Digest, Incarnation: row.Incarnation}
		})
	})
}

// ReadSource implements db.Streamer.
func (s *Store) ReadSource(ctx context.Context, arg db.ReadSourceParams) ([]db.ReadSourceRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ReadSourceRow, error) {
		rows, err := q.ReadSource(ctx, gen.ReadSourceParams(arg))
		return convert(rows, err, func(row gen.OutboxEvent) db.ReadSourceRow {
			return db.ReadSourceRow{
				Position: row.Position, TransactionID: row.TransactionID, RecordedAt: instant(row.RecordedAt), Tenant: row.Tenant, Stream: row.Stream,
				Type: row.Type, EventID: row.EventID, Digest: row.Digest, Metadata: row.Metadata, Payload: row.Payload,
			}
		})
	})
}

// AdoptStream implements db.Streamer. A file is always its own: a copy goes on where the original was.
func (s *Store) AdoptStream(ctx context.Context) ([]string, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]string, error) { return q.AdoptStream(ctx) })
}

// FindReaders implements db.Streamer.
func (s *Store) FindReaders(ctx context.Context, arg db.FindReadersParams) ([]db.FindReadersRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.FindReadersRow, error) {
		rows, err := q.FindReaders(ctx, gen.FindReadersParams{
			AllNames: arg.AllNames, Names: list(arg.Names), AfterName: arg.AfterName, MaxRows: int64(arg.MaxRows),
		})
		return convert(rows, err, func(row gen.FindReadersRow) db.FindReadersRow {
			return db.FindReadersRow{
				Name: row.Name, Incarnation: row.Incarnation, TransactionID: row.TransactionID, Position: row.Position, Digest: row.Digest,
				SavedAt: instant(row.SavedAt),
			}
		})
	})
}

// RemoveReader implements db.Streamer.
func (s *Store) RemoveReader(ctx context.Context, arg db.RemoveReaderParams) ([]string, error) {
	return write(ctx, s, func(q *gen.Queries, _ int64) ([]string, error) {
		return q.RemoveReader(ctx, gen.RemoveReaderParams(arg))
	})
}
