package pgxdb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
)

// rollbackTimeout bounds the clean-up of a connection after a failure.
const rollbackTimeout = 5 * time.Second

// Tx hands the caller's transaction over to box.Enqueue. The caller commits or rolls back. Enqueue itself never does either and leaves the
// transaction usable when it refuses an effect.
func Tx(tx pgx.Tx) db.Tx { return callerTx{tx} }

type callerTx struct{ tx pgx.Tx }

func (callerTx) FencepostTx()    {}
func (c callerTx) pgxTx() pgx.Tx { return c.tx }

// A Beginner begins transactions: *pgxpool.Pool, *pgx.Conn.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// A BoxTx is a transaction that InTx began: use it for queries like any pgx.Tx, and hand it to box.Enqueue as it is. It belongs to one
// goroutine and ends with InTx.
type BoxTx struct {
	pgx.Tx
	ids []int64
}

var _ db.Gatherer = (*BoxTx)(nil)

// FencepostTx implements db.Tx.
func (*BoxTx) FencepostTx() {}

// Gather implements db.Gatherer.
func (t *BoxTx) Gather(ids []int64) { t.ids = append(t.ids, ids...) }

func (t *BoxTx) pgxTx() pgx.Tx { return t.Tx }

// errOver: what ran after the end was committed at once, by itself.
var errOver = errors.New("pgxdb: the transaction is over before its commit: a statement of the function ended it, which it must not")

// InTx begins a transaction, runs fn, commits, and then tells the committer (an *outbox.Box) what was stored, so that senders wake at
// once. An error or a panic of fn rolls back; the error is returned, with db.ErrRetry before it when the server refused one of fn's statements
// for a serialization failure or a deadlock: the whole call may run again. A commit whose answer is lost returns an error although the server
// may have committed: find out by the effect's key.
func InTx(ctx context.Context, pool Beginner, box db.Committer, fn func(tx *BoxTx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return db.Translate(err)
	}
	boxed := &BoxTx{Tx: tx}
	committed := false
	defer func() {
		if !committed {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
			defer cancel()
			_ = tx.Rollback(ctx)
		}
	}()
	if err := fn(boxed); err != nil {
		return db.TranslateCaller(err)
	}
	if conn := tx.Conn(); conn != nil && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' {
		return errOver
	}
	if err := tx.Commit(ctx); err != nil {
		return db.Translate(err)
	}
	committed = true
	if box != nil && len(boxed.ids) > 0 {
		box.Committed(boxed.ids...)
	}
	return nil
}

// EventHandler lets a function handle events in the transaction that package events runs it in, as in
//
//	bus.Subscribe("stock", pgxdb.EventHandler(func(ctx context.Context, tx pgx.Tx, event events.Event) error { … }), "order.placed")
//
// What the function writes through tx and the receipt of the event are committed together; it neither commits nor rolls back itself,
// nor by a statement: that fails the attempt, but what the function writes after it is committed at once.
func EventHandler[E any](do func(ctx context.Context, tx pgx.Tx, event E) error) func(context.Context, db.Tx, E) error {
	return func(ctx context.Context, tx db.Tx, event E) error {
		own, ok := tx.(interface{ pgxTx() pgx.Tx })
		if !ok {
			return db.ErrForeignTx
		}
		return do(ctx, own.pgxTx(), event)
	}
}

// Transact implements db.Store.
func (s *Store) Transact(ctx context.Context, fn func(tx db.Tx) error) error {
	return InTx(ctx, readCommitted{s.pool}, nil, func(tx *BoxTx) error { return fn(tx) })
}

// Connections implements db.Store.
func (s *Store) Connections() int { return int(s.pool.Config().MaxConns) }

// OneWriter implements db.Store.
func (s *Store) OneWriter() bool { return false }

// readCommitted begins transactions at that level, whatever the server's default.
type readCommitted struct{ pool *pgxpool.Pool }

func (b readCommitted) Begin(ctx context.Context) (pgx.Tx, error) {
	return b.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
}
