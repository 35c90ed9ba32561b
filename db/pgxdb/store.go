package pgxdb

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/schemaname"
)

// Config sets up a Store. The zero value serves the schema "outbox" without listening.
type Config struct {
	// Schema is the schema that holds the tables; "" means outbox. See package schema for the names it takes.
	Schema string
	// Listen is how to open the one connection that Store.Listen takes for itself; nil means that it returns db.ErrNoListener.
	// pool.Config().ConnConfig serves unless a transaction pooler stands in between.
	Listen *pgx.ConnConfig
}

// A Store runs the operations on a pool, which the caller owns and closes after the store's last use. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	queries  *gen.Queries
	text     schemaname.Text
	settings string
	listen   *pgx.ConnConfig
}

var _ db.Store = (*Store)(nil)

// New makes a store on the pool. It opens no connection.
func New(pool *pgxpool.Pool, config Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("pgxdb: pool is nil; open one with pgxpool.New")
	}
	text, err := schemaname.NewText(config.Schema)
	if err != nil {
		return nil, fmt.Errorf("pgxdb: Config.Schema: %w", err)
	}
	s := &Store{pool: pool, queries: gen.New(), text: text, listen: config.Listen}
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

// own runs one statement in a transaction of the store's own, repeated when the server refuses it.
func own[T any](ctx context.Context, s *Store, fn func(gen.DBTX) (T, error)) (T, error) {
	return db.Repeat(ctx, func() (T, error) { return fn(pipeline{s}) })
}

// callers runs a statement in the caller's transaction.
func callers[T any](s *Store, tx db.Tx, fn func(gen.DBTX) (T, error)) (result T, err error) {
	own, ok := tx.(interface{ pgxTx() pgx.Tx })
	if !ok || none(own) || none(own.pgxTx()) {
		return result, db.ErrForeignTx
	}
	if err := checkEncoding(own.pgxTx().Conn()); err != nil {
		return result, err
	}
	result, err = fn(swapped{own.pgxTx(), s.text})
	return result, db.Translate(err)
}

// none says that tx is nil or holds a nil pointer.
func none(tx any) bool {
	v := reflect.ValueOf(tx)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// checkEncoding looks at what the server reported last: pgx, unlike lib/pq, takes over the role's client_encoding.
func checkEncoding(conn *pgx.Conn) error {
	if conn == nil { // of a transaction that is a stand-in
		return nil
	}
	return db.CheckEncoding(conn.PgConn().ParameterStatus("client_encoding"))
}

// swapped puts the schema's name into the statements of a caller's transaction.
type swapped struct {
	tx   pgx.Tx
	text schemaname.Text
}

func (q swapped) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return q.tx.Exec(ctx, q.text.Of(sql), args...)
}

func (q swapped) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return q.tx.Query(ctx, q.text.Of(sql), args...)
}

func (q swapped) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return q.tx.QueryRow(ctx, q.text.Of(sql), args...)
}

// capture keeps the text of a statement instead of sending it.
type capture struct {
	gen.DBTX
	sql string
}

func (c *capture) Exec(_ context.Context, sql string, _ ...any) (pgconn.CommandTag, error) {
	c.sql = sql
	return pgconn.CommandTag{}, nil
}
