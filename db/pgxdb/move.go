package pgxdb

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/move"
)

var _ move.Target = (*Store)(nil)

// MoveEmpty is for fencepost move alone: it reports whether the tables are as a first migration makes them.
func (s *Store) MoveEmpty(ctx context.Context) (bool, error) {
	rows, err := own(ctx, s, func(h gen.DBTX) ([]bool, error) { return s.queries.MoveEmpty(ctx, h) })
	return len(rows) > 0 && rows[0], err
}

// MoveReserve is for fencepost move alone: new ids begin after those of the size, and the stream is the one that is moved.
func (s *Store) MoveReserve(ctx context.Context, size move.Size) error {
	_, err := own(ctx, s, func(h gen.DBTX) ([]int64, error) {
		return s.queries.MoveStream(ctx, h, gen.MoveStreamParams{
			Stream: size.Stream, PurgedPosition: size.PurgedPosition, PurgedDigest: append([]byte{}, size.PurgedDigest...), Event: size.Event,
		})
	})
	if err != nil {
		return err
	}
	_, err = own(ctx, s, func(h gen.DBTX) ([]int64, error) {
		return s.queries.MoveReserve(ctx, h, gen.MoveReserveParams{
			SchemaName: s.Schema(), Message: size.Message, Audit: size.Act, Worker: size.Worker, Event: size.Event,
		})
	})
	return err
}

// MoveIn is for fencepost move alone: it stores what is not there yet and returns how many messages that were.
func (s *Store) MoveIn(ctx context.Context, slice move.Slice) (int, error) {
	ids, err := own(ctx, s, func(h gen.DBTX) ([]int64, error) {
		return s.queries.MoveIn(ctx, h, gen.MoveInParams{
			Messages: slice.Messages, Queue: slice.Queue, Settlements: slice.Settlements, OrderLeases: slice.OrderLeases,
			Pauses: slice.Pauses, Audits: slice.Audits, Events: slice.Events, Readers: slice.Readers, Claims: slice.Claims,
		})
	})
	return len(ids), err
}

// MoveCompare is for fencepost move alone: it compares the rows of a slice with those that are there.
func (s *Store) MoveCompare(ctx context.Context, slice move.Slice) ([]move.Comparison, error) {
	rows, err := own(ctx, s, func(h gen.DBTX) ([]*gen.MoveCompareRow, error) {
		return s.queries.MoveCompare(ctx, h, gen.MoveCompareParams{
			AfterID: slice.After, Upto: slice.Upto,
			Messages: slice.Messages, Queue: slice.Queue, Settlements: slice.Settlements, OrderLeases: slice.OrderLeases,
			Pauses: slice.Pauses, Audits: slice.Audits, Events: slice.Events, Readers: slice.Readers, Claims: slice.Claims,
			Incarnations: slice.Incarnations, ClaimsInAll: slice.ClaimsInAll,
		})
	})
	out := make([]move.Comparison, len(rows))
	for i, row := range rows {
		out[i] = move.Comparison{Table: row.RowsOf, Given: row.Given, Held: row.Held, Strange: row.Strange}
	}
	return out, err
}

// MoveResume is for fencepost move alone: it lifts the pause of everything that has the reason, and reports whether there was one.
func (s *Store) MoveResume(ctx context.Context, reason string) (bool, error) {
	rows, err := own(ctx, s, func(h gen.DBTX) ([]time.Time, error) {
		return s.queries.MoveResume(ctx, h, gen.MoveResumeParams{Reason: reason})
	})
	return len(rows) > 0, err
}
