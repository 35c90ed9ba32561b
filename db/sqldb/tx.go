package sqldb

import (
	"context"
	"database/sql"

	"github.com/fencepost-go/fencepost/db"
)

// Tx hands the caller's transaction over to box.Enqueue. The caller commits or rolls back. Enqueue itself never does either and leaves the
// transaction usable when it refuses an effect.
func Tx(tx *sql.Tx) db.Tx { return callerTx{tx} }

type callerTx struct{ tx *sql.Tx }

func (callerTx) FencepostTx()     {}
func (c callerTx) sqlTx() *sql.Tx { return c.tx }

// A BoxTx is a transaction that InTx began: use it for queries like any *sql.Tx, and hand it to box.Enqueue as it is. It belongs to one
// goroutine and ends with InTx.
type BoxTx struct {
	*sql.Tx
	ids []int64
}

var _ db.Gatherer = (*BoxTx)(nil)

// FencepostTx implements db.Tx.
func (*BoxTx) FencepostTx() {}

// Gather implements db.Gatherer.
func (t *BoxTx) Gather(ids []int64) { t.ids = append(t.ids, ids...) }

func (t *BoxTx) sqlTx() *sql.Tx {
	if t == nil {
		return nil
	}
	return t.Tx
}

// InTx begins a transaction, runs fn, commits, and then tells the committer (an *outbox.Box) what was stored, so that senders wake at
// once. An error or a panic of fn rolls back; the error is returned, with db.ErrRetry before it when the server refused one of fn's statements
// for a serialization failure or a deadlock: the whole call may run again. A commit whose answer is lost returns an error although the server
// may have committed: find out by the effect's key.
func InTx(ctx context.Context, pool *sql.DB, box db.Committer, fn func(tx *BoxTx) error) error {
	return inTx(ctx, pool, nil, box, fn)
}

func inTx(ctx context.Context, pool *sql.DB, options *sql.TxOptions, box db.Committer, fn func(tx *BoxTx) error) error {
	tx, err := pool.BeginTx(ctx, options)
	if err != nil {
		return db.Translate(err)
	}
	// After a commit this is a no-op; database/sql rolls back by itself when ctx ends.
	defer func() { _ = tx.Rollback() }()
	boxed := &BoxTx{Tx: tx}
	if err := fn(boxed); err != nil {
		return db.TranslateCaller(err)
	}
	if err := tx.Commit(); err != nil {
		return db.Translate(err)
	}
	if box != nil && len(boxed.ids) > 0 {
		box.Committed(boxed.ids...)
	}
	return nil
}

// EventHandler lets a function handle events in the transaction that package events runs it in, as in
//
//	bus.Subscribe("stock", sqldb.EventHandler(func(ctx context.Context, tx *sql.Tx, event events.Event) error { … }), "order.placed")
//
// What the function writes through tx and the receipt of the event are committed together; it neither commits nor rolls back itself,
// nor by a statement: that fails the attempt, but what the function writes after it is committed at once.
func EventHandler[E any](do func(ctx context.Context, tx *sql.Tx, event E) error) func(context.Context, db.Tx, E) error {
	return func(ctx context.Context, tx db.Tx, event E) error {
		own, ok := tx.(interface{ sqlTx() *sql.Tx })
		if !ok {
			return db.ErrForeignTx
		}
		return do(ctx, own.sqlTx(), event)
	}
}

// Transact implements db.Store.
func (s *Store) Transact(ctx context.Context, fn func(tx db.Tx) error) error {
	return inTx(ctx, s.pool, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, nil, func(tx *BoxTx) error { return fn(tx) })
}

// Connections implements db.Store.
func (s *Store) Connections() int { return s.pool.Stats().MaxOpenConnections }

// OneWriter implements db.Store.
func (s *Store) OneWriter() bool { return false }
