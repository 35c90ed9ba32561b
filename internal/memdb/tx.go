package memdb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Errors of a transaction.
var (
	// ErrTxClosed: it was committed or rolled back before.
	ErrTxClosed = errors.New("memdb: transaction is over")
	// ErrTxAborted: an earlier operation in it failed, so it can only be rolled back.
	ErrTxAborted = errors.New("memdb: transaction is aborted")
)

// A Tx is a transaction that enqueues, appends and claims, at READ COMMITTED: what it stores is seen by nobody else before its commit. As with the drivers, ids are
// drawn at the enqueue and burnt by a rollback, a failed operation aborts the transaction, and an enqueue of a key that another open transaction
// has stored waits for that one's end; when they wait for each other, the last to come gets db.ErrRetry.
type Tx struct {
	store    *Store
	began    time.Time
	done     chan struct{} // closed at the end
	waiting  *Tx           // whose end it waits for
	aborted  bool
	messages []tables.Message
	queue    []tables.Queue
	number   int64 // drawn with its first event
	events   []tables.Event
	readers  map[string]tables.Reader
	claims   map[claimKey]tables.Claim

	batchRows []tables.BatchRow
	fills     map[int64]struct{} // batches that it may add rows to
}

// FencepostTx implements db.Tx.
func (*Tx) FencepostTx() {}

// An identity is what a key is unique within.
type identity struct{ tenant, consumer, key string }

func identityOf(m tables.Message) identity { return identity{m.Tenant, m.Consumer, m.Key} }

// A claim is who has a key: a message, of an open transaction when tx is not nil.
type claim struct {
	id int64
	tx *Tx
}

// Begin opens a transaction, which must be ended.
func (s *Store) Begin() *Tx {
	tx := &Tx{
		store: s, began: clock(), done: make(chan struct{}),
		readers: map[string]tables.Reader{}, claims: map[claimKey]tables.Claim{}, fills: map[int64]struct{}{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[tx] = struct{}{}
	return tx
}

// InTx runs f in a transaction, commits it, and tells the committer, if there is one, what was stored; an error or a panic of f rolls back.
func InTx(ctx context.Context, s *Store, committer db.Committer, f func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx := s.Begin()
	defer tx.Rollback() // does nothing after the commit
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if committer != nil && len(tx.messages) > 0 {
		ids := make([]int64, len(tx.messages))
		for i, m := range tx.messages {
			ids[i] = m.ID
		}
		slices.Sort(ids)
		committer.Committed(ids...)
	}
	return nil
}

// Commit makes visible what the transaction stored. An aborted one is rolled back and reported so.
func (tx *Tx) Commit() error {
	_, err := hooked(context.Background(), tx.store, Call{Operation: "Commit"}, func() ([]struct{}, error) { return nil, tx.commit() })
	return err
}

func (tx *Tx) commit() error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	if err := tx.usable(); err != nil {
		tx.rollback()
		return err
	}
	st := &statement{Store: tx.store} // its checks passed at the enqueue
	for _, m := range tx.messages {
		st.messages.put(st, m)
		st.keys[identityOf(m)] = claim{id: m.ID}
	}
	for _, q := range tx.queue {
		st.queue.put(st, q)
	}
	for _, e := range tx.events {
		st.events.put(st, e)
	}
	for _, r := range tx.readers {
		st.readers.put(st, r)
	}
	for _, c := range tx.claims {
		st.claims.put(st, c)
	}
	for _, r := range tx.batchRows {
		if r.MessageID != 0 {
			r.Fate = st.fateOf(r.MessageID)
		}
		st.setRow(r)
	}
	tx.end()
	return nil
}

// Rollback undoes the transaction. After its end it returns ErrTxClosed and does nothing.
func (tx *Tx) Rollback() error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	if tx.closed() {
		return ErrTxClosed
	}
	tx.rollback()
	return nil
}

func (tx *Tx) rollback() {
	if tx.closed() {
		return
	}
	for _, m := range tx.messages {
		delete(tx.store.keys, identityOf(m))
	}
	tx.end()
}

func (tx *Tx) end() {
	for row, holder := range tx.store.locks {
		if holder == tx {
			delete(tx.store.locks, row)
		}
	}
	delete(tx.store.open, tx)
	close(tx.done)
}

func (tx *Tx) closed() bool {
	_, open := tx.store.open[tx]
	return !open
}

func (tx *Tx) usable() error {
	switch {
	case tx.closed():
		return ErrTxClosed
	case tx.aborted:
		return ErrTxAborted
	default:
		return nil
	}
}

// wait lets go of the store until the other transaction has ended.
func (tx *Tx) wait(ctx context.Context, other *Tx) error {
	for next := other; next != nil; next = next.waiting {
		if next == tx {
			return db.ErrRetry // a deadlock
		}
	}
	tx.waiting = other
	tx.store.mu.Unlock()
	defer func() {
		tx.store.mu.Lock()
		tx.waiting = nil
	}()
	select {
	case <-other.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lock makes the row with that key the transaction's until its end, waiting for the end of another that has it.
func (tx *Tx) lock(ctx context.Context, row any) error {
	err := tx.await(ctx, row)
	if err == nil {
		tx.store.locks[row] = tx
	}
	return err
}

// await waits for the end of another that has the row with that key.
func (tx *Tx) await(ctx context.Context, row any) error {
	for {
		holder := tx.store.locks[row]
		if holder == nil || holder == tx {
			return nil
		}
		if err := tx.wait(ctx, holder); err != nil {
			return err
		}
	}
}

// Transact implements db.Store.
func (s *Store) Transact(ctx context.Context, fn func(tx db.Tx) error) error {
	return InTx(ctx, s, nil, func(tx *Tx) error { return fn(tx) })
}

// Connections implements db.Store.
func (s *Store) Connections() int { return 0 }

// OneWriter implements db.Store.
func (s *Store) OneWriter() bool { return false }

// in runs an operation in the caller's transaction.
func in[R any](ctx context.Context, s *Store, name string, handle db.Tx, params any, operation func(*Tx) ([]R, error)) ([]R, error) {
	tx, ok := handle.(*Tx)
	if !ok || tx == nil || tx.store != s {
		return nil, db.ErrForeignTx
	}
	return hooked(ctx, s, Call{name, params}, func() ([]R, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := tx.usable(); err != nil {
			return nil, err
		}
		rows, err := operation(tx)
		tx.aborted = err != nil
		return rows, err
	})
}
