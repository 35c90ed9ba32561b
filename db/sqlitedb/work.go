package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// RegisterWorker implements db.Worker.
func (s *Store) RegisterWorker(ctx context.Context, arg db.RegisterWorkerParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		return q.RegisterWorker(ctx, gen.RegisterWorkerParams{Name: arg.Name, Host: arg.Host, Now: now})
	})
}

// TouchWorkers implements db.Worker.
func (s *Store) TouchWorkers(ctx context.Context, arg db.TouchWorkersParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		return q.TouchWorkers(ctx, gen.TouchWorkersParams{Ids: list(arg.Ids), Now: now})
	})
}

// ReadVersion implements db.Worker.
func (s *Store) ReadVersion(ctx context.Context) ([]int64, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]int64, error) { return q.ReadVersion(ctx) })
}

// CheckRole implements db.Worker. A file has no roles: who may write it may do everything.
func (s *Store) CheckRole(ctx context.Context, _ db.CheckRoleParams) ([]db.CheckRoleRow, error) {
	return []db.CheckRoleRow{{MayLease: true, MaySettle: true}}, ctx.Err()
}
