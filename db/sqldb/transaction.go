package sqldb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb/internal/gen"
)

// transaction is a transaction of our own for one statement: BEGIN, the planner settings, the statement, COMMIT. A serializable default
// would turn most settles into 40001, and without the settings a plan cached on an empty queue stays for a full one.
type transaction struct {
	gen.DBTX // generated code queries only
	store    *Store
	tx       *sql.Tx
	prepared map[string]*sql.Stmt // those of the store that it uses
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
	settings, err := t.prepare(ctx, t.store.settings)
	if err != nil {
		return nil, err
	}
	statement, err := t.prepare(ctx, query)
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
	if t.tx, err = t.store.pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}); err != nil {
		return err
	}
	return t.store.checkEncoding(ctx, t.tx)
}

// end commits when the statement went well and rolls back otherwise. When the server no longer has the prepared statements they are dropped,
// for all connections, and it returns db.ErrRetry: nothing was run.
func (t *transaction) end(err error) error {
	if err == nil && t.tx != nil {
		return t.tx.Commit()
	}
	if t.tx != nil {
		_ = t.tx.Rollback()
	}
	if db.Vanished(err) {
		t.store.generation.Add(1)
	}
	dropped := false
	for query, statement := range t.prepared {
		if db.Vanished(err) && t.store.prepared.CompareAndDelete(query, statement) {
			_ = statement.Close()
		}
		// Another transaction may have closed it under this one.
		current, _ := t.store.prepared.Load(query)
		dropped = dropped || current != statement
	}
	if dropped {
		return fmt.Errorf("%w: %w", db.ErrRetry, err)
	}
	return err
}

func (t *transaction) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	statement, err := t.store.prepare(ctx, query)
	if err == nil {
		t.prepared[query] = statement
	}
	return statement, err
}

// prepare gives the statement for a constant text. database/sql prepares it again on each connection that needs it.
func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if known, ok := s.prepared.Load(query); ok {
		return known.(*sql.Stmt), nil
	}
	text := query
	if n := s.generation.Load(); n > 0 {
		// pgx names a statement for its text, and would take a vanished one for still prepared while another transaction keeps it from closing.
		text += fmt.Sprintf("\n-- %d", n)
	}
	fresh, err := s.pool.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if known, lost := s.prepared.LoadOrStore(query, fresh); lost {
		_ = fresh.Close()
		return known.(*sql.Stmt), nil
	}
	return fresh, nil
}
