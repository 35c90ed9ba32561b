package sqlitedb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// Tx hands the caller's transaction over to box.Enqueue: one on Store.DB, or on a handle of the caller's own on the same file. One on another file
// is refused with db.ErrForeignTx, unless the store is on a handle that was given, has bounded connections and has not run anything yet: it does
// not know its own file then. The caller commits or rolls back. Enqueue itself never does either and leaves the transaction usable when it refuses an effect. After any other error of a statement
// that writes, Enqueue's or the caller's own, roll back and return it: SQLite may have ended the transaction itself (a full disk, an interrupt,
// ON CONFLICT ROLLBACK), and what is run after that is committed at once, by itself. A transaction that was begun as a reader (without
// _txlock=immediate) and has read before it enqueues gets db.ErrRetry when another has written since: run it again.
func Tx(tx *sql.Tx) db.Tx { return callerTx{tx} }

type callerTx struct{ tx *sql.Tx }

func (callerTx) FencepostTx() {}

func (c callerTx) sqlTx() (*sql.Tx, *Store) { return c.tx, nil }

// A BoxTx is a transaction that InTx began: use it for queries like any *sql.Tx, and hand it to box.Enqueue as it is. It belongs to one
// goroutine and ends with InTx.
type BoxTx struct {
	*sql.Tx
	store *Store
	ids   []int64
}

var _ db.Gatherer = (*BoxTx)(nil)

// FencepostTx implements db.Tx.
func (*BoxTx) FencepostTx() {}

// Gather implements db.Gatherer.
func (t *BoxTx) Gather(ids []int64) { t.ids = append(t.ids, ids...) }

func (t *BoxTx) sqlTx() (*sql.Tx, *Store) {
	if t == nil {
		return nil, nil
	}
	return t.Tx, t.store
}

// InTx begins a write transaction on Store.DB, runs fn, commits, and then tells the committer (an *outbox.Box) what was stored, so that senders
// of this process wake at once. An error or a panic of fn rolls back; the error is returned, with db.ErrRetry before it when a statement of fn
// found the file busy: the whole call may run again. fn must return the error of a statement that failed to write, as Tx says why. An error of the
// commit means that nothing was committed, unless the disk failed or fn went on after SQLite had ended its transaction: find out by the
// effect's key. The box that enqueues inside fn must be over the same file, or it answers db.ErrForeignTx. Inside fn use the transaction alone: a
// call of store.DB() or of the box there that needs the write lock, or the one connection, waits until its ctx ends.
func InTx(ctx context.Context, store *Store, box db.Committer, fn func(tx *BoxTx) error) error {
	if store == nil {
		return errors.New("sqlitedb: store is nil; make one with Open or New")
	}
	if err := store.prepare(ctx, store.writer); err != nil {
		return store.translate(err)
	}
	tx, err := store.writer.pool.BeginTx(ctx, nil)
	if err != nil {
		return store.translate(err)
	}
	// After a commit this is a no-op; database/sql rolls back by itself when ctx ends.
	defer func() { _ = tx.Rollback() }()
	if err := store.check(ctx, tx); err != nil {
		return store.translate(err)
	}
	if err := store.writer.in(tx).BecomeWriter(ctx); err != nil {
		return store.translate(err)
	}
	boxed := &BoxTx{Tx: tx, store: store}
	if err := fn(boxed); err != nil {
		return translateCaller(err)
	}
	if err := tx.Commit(); err != nil {
		return store.translate(err)
	}
	if box != nil && len(boxed.ids) > 0 {
		box.Committed(boxed.ids...)
	}
	return nil
}

// EventHandler lets a function handle events in the transaction that package events runs it in, as in
//
//	bus.Subscribe("stock", sqlitedb.EventHandler(func(ctx context.Context, tx *sql.Tx, event events.Event) error { … }), "order.placed")
//
// What the function writes through tx and the receipt of the event are committed together; it neither commits nor rolls back itself, nor by a
// statement (INSERT OR ROLLBACK): that fails the attempt, but what the function writes after it is committed at once. It must return the error of a
// statement that failed to write, as Tx says why. While it runs it has the file's one write lock.
func EventHandler[E any](do func(ctx context.Context, tx *sql.Tx, event E) error) func(context.Context, db.Tx, E) error {
	return func(ctx context.Context, tx db.Tx, event E) error {
		own, ok := tx.(interface{ sqlTx() (*sql.Tx, *Store) })
		if !ok {
			return db.ErrForeignTx
		}
		on, _ := own.sqlTx()
		return do(ctx, on, event)
	}
}

// Transact implements db.Store.
func (s *Store) Transact(ctx context.Context, fn func(tx db.Tx) error) error {
	return InTx(ctx, s, nil, func(tx *BoxTx) error { return fn(tx) })
}

// Connections implements db.Store.
func (s *Store) Connections() int { return 0 }

// OneWriter implements db.Store.
func (s *Store) OneWriter() bool { return true }

// errOver: what is run there now would be committed at once, by itself.
var errOver = errors.New("sqlitedb: the transaction is over: SQLite rolled it back for the error of an earlier statement; run it again")

// access is what an operation does in the caller's transaction.
type access int

const (
	reads access = iota
	writes
)

// callers runs an operation in the caller's transaction, all of it or nothing: a statement that fails there takes back only itself. The operation's
// context is not cancelled with ctx: for a statement that writes and is interrupted SQLite rolls back the whole transaction, the caller's changes
// with it. It looks at ctx between its statements instead.
func callers[T any](ctx context.Context, s *Store, tx db.Tx, does access, operation func(whole context.Context, q *gen.Queries, now int64) (T, error)) (result T, err error) {
	own, ok := tx.(interface{ sqlTx() (*sql.Tx, *Store) })
	if !ok {
		return result, db.ErrForeignTx
	}
	on, store := own.sqlTx()
	if on == nil {
		return result, db.ErrForeignTx
	}
	q := new(statements).in(on) // perhaps on a handle that the store does not know
	if store == s {
		q = s.writer.in(on)
	}
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if store != s {
		if err := s.sameFile(ctx, on); err != nil {
			return result, err
		}
	}
	whole := context.WithoutCancel(ctx)
	if _, err := on.ExecContext(whole, "BEGIN"); err == nil { // inside a transaction it is refused
		_, err = on.ExecContext(whole, "ROLLBACK")
		return result, errors.Join(errOver, err)
	}
	if _, err := on.ExecContext(whole, "SAVEPOINT fencepost"); err != nil {
		return result, s.translate(err)
	}
	if does == writes {
		// A transaction begun as a reader may wait for the write lock here, as long as ctx lets it.
		err = q.BecomeWriter(ctx)
	}
	var now int64
	if err == nil {
		now, err = q.ReadClock(whole)
	}
	if err == nil {
		result, err = operation(whole, q, now)
	}
	if err != nil {
		_, undone := on.ExecContext(whole, "ROLLBACK TO fencepost; RELEASE fencepost")
		return result, s.translate(errors.Join(err, undone))
	}
	_, err = on.ExecContext(whole, "RELEASE fencepost")
	return result, s.translate(err)
}

// sameFile refuses a transaction on another file than the store's.
func (s *Store) sameFile(ctx context.Context, tx *sql.Tx) error {
	own := s.where()
	if own == "" && s.writer.pool.Stats().MaxOpenConnections == 0 { // else a connection may be free only after this transaction
		own, _ = s.file(ctx)
	}
	theirs, err := mainFile(ctx, tx)
	if err != nil {
		return s.translate(err)
	}
	if own == "" || own == theirs {
		return nil
	}
	here, ours := os.Stat(own)
	there, other := os.Stat(theirs)
	if ours != nil || other == nil && os.SameFile(here, there) {
		return nil
	}
	return refuse(db.ErrForeignTx, "the transaction is on another file, %s: this store is on %s; begin it there, or enqueue with a box over that file",
		cmp.Or(theirs, "in memory"), own)
}
