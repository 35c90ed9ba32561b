package sqlitedb

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// statements are a handle and the statements that are prepared on it: those that its transactions used so far.
type statements struct {
	pool     *sql.DB
	prepared sync.Map    // constant text → *sql.Stmt
	wanted   chan string // the texts to prepare; one for which there is no room is wanted again
}

func newStatements(pool *sql.DB) *statements {
	return &statements{pool: pool, wanted: make(chan string, 64)}
}

// prepare prepares what earlier transactions used. It must come before a transaction: inside, it would wait for a second connection, for ever in a
// pool of one.
func (s *statements) prepare(ctx context.Context) error {
	for {
		select {
		case query := <-s.wanted:
			if _, done := s.prepared.Load(query); done {
				continue
			}
			fresh, err := s.pool.PrepareContext(ctx, query)
			if err != nil {
				return err
			}
			if _, lost := s.prepared.LoadOrStore(query, fresh); lost {
				_ = fresh.Close()
			}
		default:
			return nil
		}
	}
}

func (s *statements) close() (err error) {
	s.prepared.Range(func(query, prepared any) bool {
		s.prepared.Delete(query)
		err = errors.Join(err, prepared.(*sql.Stmt).Close())
		return true
	})
	return err
}

// tx is what is needed of a *sql.Tx.
type tx interface {
	gen.DBTX
	StmtContext(ctx context.Context, known *sql.Stmt) *sql.Stmt
}

// in gives the queries in a transaction on the handle.
func (s *statements) in(on tx) *gen.Queries {
	return gen.New(transaction{on, s, map[string]*sql.Stmt{}})
}

// A transaction prepares each statement once: at its first use here, when no transaction before has used it.
type transaction struct {
	tx
	on       *statements
	prepared map[string]*sql.Stmt
}

func (t transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	statement, err := t.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.ExecContext(ctx, args...)
}

func (t transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := t.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (t transaction) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statement, err := t.statement(ctx, query)
	if err != nil {
		return t.tx.QueryRowContext(ctx, query, args...) // to give the error
	}
	return statement.QueryRowContext(ctx, args...)
}

func (t transaction) statement(ctx context.Context, query string) (statement *sql.Stmt, err error) {
	if statement, ok := t.prepared[query]; ok {
		return statement, nil
	}
	if known, ok := t.on.prepared.Load(query); ok {
		statement = t.tx.StmtContext(ctx, known.(*sql.Stmt))
	} else if statement, err = t.tx.PrepareContext(ctx, query); err != nil {
		return nil, err
	} else {
		select {
		case t.on.wanted <- query:
		default:
		}
	}
	t.prepared[query] = statement
	return statement, nil
}
