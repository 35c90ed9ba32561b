package memdb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// RegisterWorker implements db.Worker.
func (s *Store) RegisterWorker(ctx context.Context, arg db.RegisterWorkerParams) ([]int64, error) {
	return run(ctx, s, "RegisterWorker", arg, func(st *statement) []int64 {
		st.lastWorker++
		st.workers.put(st, tables.Worker{ID: st.lastWorker, StartedAt: st.now, SeenAt: st.now, Name: arg.Name, Host: arg.Host})
		return []int64{st.lastWorker}
	})
}

// TouchWorkers implements db.Worker.
func (s *Store) TouchWorkers(ctx context.Context, arg db.TouchWorkersParams) ([]int64, error) {
	return run(ctx, s, "TouchWorkers", arg, func(st *statement) []int64 {
		touched := []int64{}
		for _, id := range arg.Ids {
			if w, ok := st.workers.rows[id]; ok {
				w.SeenAt = st.now
				st.workers.put(st, w)
				touched = append(touched, id)
			}
		}
		return touched
	})
}

// CheckRole implements db.Worker.
func (s *Store) CheckRole(ctx context.Context, arg db.CheckRoleParams) ([]db.CheckRoleRow, error) {
	return run(ctx, s, "CheckRole", arg, func(*statement) []db.CheckRoleRow {
		if s.config.Role != nil {
			return []db.CheckRoleRow{*s.config.Role}
		}
		return []db.CheckRoleRow{{MayLease: true, MaySettle: true}}
	})
}

// ReadVersion implements db.Worker.
func (s *Store) ReadVersion(ctx context.Context) ([]int64, error) {
	return run(ctx, s, "ReadVersion", nil, func(*statement) []int64 {
		if s.config.Version != 0 {
			return []int64{s.config.Version}
		}
		return []int64{db.NewestSchema}
	})
}
