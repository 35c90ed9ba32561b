package sqldb

import (
	"context"
	"database/sql"

	"github.com/fencepost-go/fencepost/db/sqldb/internal/gen"
)

// transaction is a transaction of our own for one statement: BEGIN, the planner settings, the statement, COMMIT. A serializable default
// would turn most settles into 40001, and without the settings a plan cached on an empty queue stays for a full one.
type transaction struct {
	gen.DBTX // generated code queries only
	store    *Store
	tx       *sql.Tx
}

// QueryContext begins the transaction and runs the statement. Statements are prepared through the pool before that: inside, preparing
// would wait for a second connection, for ever in a pool of one.
func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	query = t.store.text.Of(query)
	if t.store.unnamed {
		if err := t.begin(ctx); err != nil {
			return nil, err
		}
		if _, err := t.tx.ExecContext(ctx, t.store.settings); err != nil {
			return nil, err
		}
		return t.tx.QueryContext(ctx, query, args...)
	}
	settings, err := t.store.prepare(ctx, t.store.settings)
	if err != nil {
		return nil, err
	}
	statement, err := t.store.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	if _, err := t.tx.StmtContext(ctx, settings).ExecContext(ctx); err != nil {
		return nil, err
	}
	return t.tx.StmtContext(ctx, statement).QueryContext(ctx, args...)
}

func (t *transaction) begin(ctx context.Context) (err error) {
	t.tx, err = t.store.pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	return err
}

// end commits when the statement went well and rolls back otherwise.
func (t *transaction) end(err error) error {
	if t.tx == nil {
		return err
	}
	if err != nil {
		_ = t.tx.Rollback()
		return err
	}
	return t.tx.Commit()
}

// prepare gives the statement for a constant text. database/sql prepares it again on each connection that needs it.
func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if known, ok := s.prepared.Load(query); ok {
		return known.(*sql.Stmt), nil
	}
	fresh, err := s.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if known, lost := s.prepared.LoadOrStore(query, fresh); lost {
		_ = fresh.Close()
		return known.(*sql.Stmt), nil
	}
	return fresh, nil
}
