package pgxdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pipeline sends BEGIN, the planner settings, the statement and COMMIT as one batch: a transaction of our own in one round trip.
// A serializable default would turn most settles into 40001, and without the settings a plan cached on an empty queue stays for a full one.
type pipeline struct{ store *Store }

// Exec runs a statement whose rows nobody wants.
func (p pipeline) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := p.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// QueryRow is not used by generated code, which has no :one statements.
func (p pipeline) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, sql, args...)
	return row{rows, err}
}

// Query starts the batch. The rows it returns report the outcome of COMMIT through Err, so that nobody sees success before it.
func (p pipeline) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, err := p.store.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkEncoding(conn.Conn()); err != nil {
		conn.Release()
		return nil, err
	}
	var batch pgx.Batch
	batch.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	batch.Queue(p.store.settings)
	batch.Queue(p.store.text.Of(sql), args...)
	batch.Queue("COMMIT")
	r := &rows{conn: conn, results: conn.SendBatch(ctx, &batch)}
	for range 2 {
		if _, err := r.results.Exec(); err != nil {
			r.end(err)
			return nil, r.err
		}
	}
	if r.Rows, err = r.results.Query(); err != nil {
		r.end(err)
		return nil, r.err
	}
	return r, nil
}

// rows are the statement's rows; at their end they read COMMIT and give the connection back.
type rows struct {
	pgx.Rows
	conn    *pgxpool.Conn
	results pgx.BatchResults
	err     error
	ended   bool
}

func (r *rows) Next() bool {
	if !r.ended && r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *rows) Close() {
	if r.ended {
		return
	}
	r.Rows.Close()
	err := r.Rows.Err()
	if err == nil {
		_, err = r.results.Exec()
	}
	r.end(err)
}

func (r *rows) Err() error {
	r.Close()
	return r.err
}

// end closes the batch and gives the connection back. A transaction that the server still holds open is rolled back first: the pool
// would close the connection instead.
func (r *rows) end(err error) {
	r.ended, r.err = true, err
	if err := r.results.Close(); r.err == nil {
		r.err = err
	}
	if conn := r.conn.Conn(); !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		// Bounded, and detached: the caller's context may be what ended the statement.
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			conn.Close(ctx)
		}
	}
	r.conn.Release()
}

// row is the first of some rows.
type row struct {
	rows pgx.Rows
	err  error
}

func (r row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
