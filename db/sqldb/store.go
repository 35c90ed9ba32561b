package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/schemaname"
)

// Statements says how the store sends its own statements.
type Statements int

const (
	// Prepared keeps one prepared statement for each text and connection.
	Prepared Statements = iota
	// Unnamed prepares nothing that outlives a call, for transaction poolers that cannot follow prepared statements.
	Unnamed
)

// Config sets up a Store. The zero value serves the schema "outbox" with prepared statements and without listening.
type Config struct {
	// Schema is the schema that holds the tables; "" means outbox. See package schema for the names it takes.
	Schema string
	// Statements is Prepared unless a pooler forbids it.
	Statements Statements
	// ListenDSN is the connection string of the one connection that Store.Listen takes for itself through lib/pq's listener; "" means
	// that Listen returns db.ErrNoListener. It is never printed.
	ListenDSN string
}

// A Store runs the operations on a pool, which the caller owns and closes after the store's last use. It is safe for concurrent use.
type Store struct {
	pool      *sql.DB
	queries   *gen.Queries
	text      schemaname.Text
	listenDSN string
	unnamed   bool
	settings  string
	utf8      atomic.Bool
	prepared  sync.Map // constant text → *sql.Stmt

	// generation counts how often prepared statements had vanished from the server.
	generation atomic.Int64
}

var _ db.Store = (*Store)(nil)

// New makes a store on the pool. It opens no connection.
func New(pool *sql.DB, config Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("sqldb: pool is nil; open one with sql.Open")
	}
	if config.Statements != Prepared && config.Statements != Unnamed {
		return nil, fmt.Errorf("sqldb: Config.Statements: %d is neither Prepared nor Unnamed", config.Statements)
	}
	text, err := schemaname.NewText(config.Schema)
	if err != nil {
		return nil, fmt.Errorf("sqldb: Config.Schema: %w", err)
	}
	if _, err := pq.NewConnector(config.ListenDSN); config.ListenDSN != "" && err != nil {
		return nil, errors.New("sqldb: Config.ListenDSN is no connection string of lib/pq") // err may repeat a password
	}
	s := &Store{pool: pool, queries: gen.New(), text: text, listenDSN: config.ListenDSN, unnamed: config.Statements == Unnamed}
	var seen capture
	if err := s.queries.Settings(context.Background(), &seen); err != nil {
		return nil, err
	}
	s.settings = seen.sql
	return s, nil
}

// Schema implements db.Store.
func (s *Store) Schema() string { return s.text.Schema() }

// SchemaRange implements db.Store.
func (s *Store) SchemaRange() (oldest, newest int64) { return db.OldestSchema, db.NewestSchema }

// unwind is how long a call has to come back once its context is over: long enough for a server to answer a cancel request.
const unwind = 100 * time.Millisecond

// own runs one statement in a transaction of the store's own, repeated when the server refuses it.
//
// It returns soon after ctx is over, even when the connection does not: lib/pq goes on reading from a half-open one until TCP gives up. The
// call that is left behind ends then; it gives its connection back itself, and nobody sees what it returns.
func own[T any](ctx context.Context, s *Store, fn func(gen.DBTX) (T, error)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := db.Repeat(ctx, func() (T, error) {
			t := &transaction{store: s, prepared: map[string]*sql.Stmt{}}
			result, err := fn(t)
			return result, t.end(err)
		})
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		return a.result, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answered:
		return a.result, a.err
	case <-time.After(unwind):
		var none T
		return none, context.Cause(ctx)
	}
}

// callers runs a statement in the caller's transaction.
func callers[T any](s *Store, tx db.Tx, fn func(gen.DBTX) (T, error)) (result T, err error) {
	own, ok := tx.(interface{ sqlTx() *sql.Tx })
	if !ok || own.sqlTx() == nil {
		return result, db.ErrForeignTx
	}
	result, err = fn(swapped{own.sqlTx(), s})
	return result, db.Translate(err)
}

// checkEncoding asks once for a store, since the connections of a pool have one string and one role. Through lib/pq it is UTF8 always.
func (s *Store) checkEncoding(ctx context.Context, tx *sql.Tx) error {
	if s.utf8.Load() {
		return nil
	}
	var encoding string
	if err := tx.QueryRowContext(ctx, "SHOW client_encoding").Scan(&encoding); err != nil {
		return err
	}
	err := db.CheckEncoding(encoding)
	s.utf8.Store(err == nil)
	return err
}

// swapped puts the schema's name into the statements of a caller's transaction.
type swapped struct {
	*sql.Tx
	store *Store
}

func (q swapped) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := q.store.checkEncoding(ctx, q.Tx); err != nil {
		return nil, err
	}
	return q.Tx.QueryContext(ctx, q.store.text.Of(query), args...)
}

// capture keeps the text of a statement instead of sending it.
type capture struct {
	gen.DBTX
	sql string
}

func (c *capture) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	c.sql = query
	return nil, nil
}
