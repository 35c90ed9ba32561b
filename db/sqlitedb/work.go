package sqlitedb

import (
	"context"
	"database/sql"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// RegisterWorker implements db.Worker.
func (s *Store) RegisterWorker(ctx context.Context, arg db.RegisterWorkerParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		return q.RegisterWorker(ctx, gen.RegisterWorkerParams{Name: arg.Name, Host: arg.Host, Now: now})
	})
}

// TouchWorker implements db.Worker.
func (s *Store) TouchWorker(ctx context.Context, arg db.TouchWorkerParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		return q.TouchWorker(ctx, gen.TouchWorkerParams{ID: arg.ID, Now: now})
	})
}

// ReadVersion implements db.Worker. It prepares nothing, since the other statements may need newer tables than there are.
func (s *Store) ReadVersion(ctx context.Context) ([]int64, error) {
	return db.Repeat(ctx, func() ([]int64, error) {
		if _, err := s.file(ctx); err != nil {
			return nil, s.translate(err)
		}
		tx, err := s.reader.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return nil, s.translate(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := s.check(ctx, tx); err != nil {
			return nil, s.translate(err)
		}
		versions, err := gen.New(tx).ReadVersion(ctx)
		return versions, s.translate(err)
	})
}

// CheckRole implements db.Worker. A file has no roles: who may write it may do everything.
func (s *Store) CheckRole(ctx context.Context, _ db.CheckRoleParams) ([]db.CheckRoleRow, error) {
	return []db.CheckRoleRow{{MayLease: true, MaySettle: true}}, ctx.Err()
}
