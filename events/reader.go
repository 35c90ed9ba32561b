package events

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// A Reader is how far a named reader came. Retention never purges what it has yet to read, unless forced.
type Reader struct {
	Name    string
	Cursor  Cursor
	SavedAt time.Time
}

// Reader is where the named reader stands; the zero Cursor when it has saved nothing yet. Retryable.
func (l *Log) Reader(ctx context.Context, name string) (Cursor, error) {
	if err := checkReader(ctx, name); err != nil {
		return Cursor{}, failed("reader", err)
	}
	rows, err := l.store.FindReaders(ctx, db.FindReadersParams{Names: []string{name}, MaxRows: 1})
	if err != nil || len(rows) == 0 {
		return Cursor{}, failed("reader", err)
	}
	return readerOf(rows[0]).Cursor, nil
}

// SaveReader moves the named reader from one place to another, in the transaction that records what was made of the events in between: so
// each is applied once. ErrReaderMoved: it does not stand at from; roll back, and read again from Reader. ErrCursorUnknown: to is a place of
// another stream, such as the original of one that was restored; roll back, since what was read is none of this one.
func (l *Log) SaveReader(ctx context.Context, tx db.Tx, name string, from, to Cursor) error {
	if err := checkReader(ctx, name); err != nil {
		return failed("save reader", err)
	}
	if to.IsZero() {
		return failed("save reader", &outbox.InvalidError{Field: "to", Problem: "is the zero Cursor; RemoveReader forgets a reader"})
	}
	if tx == nil {
		return failed("save reader", db.ErrForeignTx)
	}
	rows, err := l.store.SaveReader(ctx, tx, db.SaveReaderParams{
		Name: name, FromTransactionID: from.transaction, FromPosition: from.position,
		Incarnation: to.incarnationText(), TransactionID: to.transaction, Position: to.position, Digest: to.digestBytes(),
	})
	switch {
	case err != nil:
	case !rows[0].Known:
		err = ErrCursorUnknown
	case !rows[0].Saved:
		err = ErrReaderMoved
	}
	return failed("save reader", err)
}

// Readers lists the named readers after a name, in the order of their names, at most limit (1,000). Retryable.
func (l *Log) Readers(ctx context.Context, after string, limit int) ([]Reader, error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return nil, failed("readers", err)
	}
	rows, err := l.store.FindReaders(ctx, db.FindReadersParams{AllNames: true, Names: []string{}, AfterName: after, MaxRows: int32(min(limit, maxBatch))})
	readers := make([]Reader, len(rows))
	for i, row := range rows {
		readers[i] = readerOf(row)
	}
	return readers, failed("readers", err)
}

// RemoveReader forgets a named reader and says whether there was one. Retention waits for it no longer. Retryable.
func (l *Log) RemoveReader(ctx context.Context, name string) (bool, error) {
	if err := checkReader(ctx, name); err != nil {
		return false, failed("remove reader", err)
	}
	rows, err := l.store.RemoveReader(ctx, db.RemoveReaderParams{Name: name})
	return len(rows) > 0, failed("remove reader", err)
}

func checkReader(ctx context.Context, name string) error {
	var found refusal.Problems
	bounds.CheckRequired(name, bounds.Name, found.On("name"))
	return found.Refused(ctx)
}

func readerOf(row db.FindReadersRow) Reader {
	return Reader{Name: row.Name, Cursor: cursorOf(row.Incarnation, row.TransactionID, row.Position, row.Digest), SavedAt: row.SavedAt.UTC()}
}
