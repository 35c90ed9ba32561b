package sqlitedb

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// A Store runs the operations on one file. It is safe for concurrent use.
type Store struct {
	writer, reader *statements
	config         Config
	owned          bool                   // its handles were opened by Open
	opened         string                 // the path that Open was given, absolute
	path           atomic.Pointer[string] // as SQLite resolved it, once it was asked for
}

// Schema implements db.Store. The tables carry the name as a prefix.
func (s *Store) Schema() string { return "outbox" }

// SchemaRange implements db.Store.
func (s *Store) SchemaRange() (oldest, newest int64) { return db.OldestSchema, db.NewestSchema }

// prepare comes before a transaction. A store on a handle that was given learns before which file it is on: inside it could not ask.
func (s *Store) prepare(ctx context.Context, on *statements) error {
	if !s.owned {
		if _, err := s.file(ctx); err != nil {
			return err
		}
	}
	return on.prepare(ctx)
}

// write runs an operation in a write transaction of the store's own, repeated when another process kept the lock for longer than the busy
// timeout. now is the transaction's one reading of the clock, in microseconds.
func write[T any](ctx context.Context, s *Store, operation func(q *gen.Queries, now int64) (T, error)) (T, error) {
	return db.Repeat(ctx, func() (T, error) {
		result, err := in(ctx, s, s.writer, nil, operation)
		return result, s.translate(err)
	})
}

// read runs an operation in one snapshot. It waits for no writer, but the first to open a file may find another recovering it: then it is repeated.
func read[T any](ctx context.Context, s *Store, operation func(q *gen.Queries, now int64) (T, error)) (T, error) {
	return db.Repeat(ctx, func() (T, error) {
		result, err := in(ctx, s, s.reader, &sql.TxOptions{ReadOnly: true}, operation)
		return result, s.translate(err)
	})
}

func in[T any](ctx context.Context, s *Store, on *statements, options *sql.TxOptions, operation func(*gen.Queries, int64) (T, error)) (result T, err error) {
	if err := s.prepare(ctx, on); err != nil {
		return result, err
	}
	tx, err := on.pool.BeginTx(ctx, options)
	if err != nil {
		return result, err
	}
	defer func() { _ = tx.Rollback() }() // of no effect after the commit
	if err := s.check(ctx, tx); err != nil {
		return result, err
	}
	q := on.in(tx)
	if options == nil {
		if err := q.BecomeWriter(ctx); err != nil {
			return result, err
		}
	}
	now, err := q.ReadClock(ctx)
	if err != nil {
		return result, err
	}
	if result, err = operation(q, now); err != nil {
		return result, err
	}
	return result, tx.Commit()
}

// check refuses a connection that the store did not open and that lacks a setting: no repetition helps. Its settings are its own, whatever others of the handle have.
func (s *Store) check(ctx context.Context, tx *sql.Tx) error {
	if s.owned {
		return nil
	}
	var journal string
	var timeout, synchronous int64
	err := errors.Join(
		tx.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal),
		tx.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&timeout),
		tx.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous),
	)
	const normal, full = 1, 2
	needed := []int64{Full: full, Normal: normal}[s.config.Synchronous]
	switch {
	case err != nil:
		return err
	case journal != "wal":
		return refuse(db.ErrDenied, "the connection has journal_mode %s and needs WAL: open its handle with _pragma=journal_mode(WAL)", journal)
	case timeout < shortestBusyTimeout.Milliseconds():
		return refuse(db.ErrDenied, "the connection has busy_timeout %d ms and needs 1000 or more: open its handle with _pragma=busy_timeout(10000)", timeout)
	case synchronous < needed:
		return refuse(db.ErrDenied, "the connection has synchronous %d and needs %d: open its handle with _pragma=synchronous(%[2]d), or set Config.Synchronous to Normal",
			synchronous, needed)
	}
	return nil
}
