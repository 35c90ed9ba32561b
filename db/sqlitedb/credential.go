package sqlitedb

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// AddCredential implements db.Operator.
func (s *Store) AddCredential(ctx context.Context, arg db.AddCredentialParams) ([]time.Time, error) {
	type pair struct {
		Consumer string `json:"consumer"`
		Tenant   string `json:"tenant"`
	}
	given := make([]pair, len(arg.Consumers))
	for i := range given {
		given[i] = pair{arg.Consumers[i], arg.Tenants[i]}
	}
	return write(ctx, s, func(q *gen.Queries, now int64) ([]time.Time, error) {
		added, err := q.AddCredential(ctx, gen.AddCredentialParams{
			Name: arg.Name, Salt: arg.Salt, Hash: arg.Hash, Iterations: int64(arg.Iterations), Actor: arg.Actor, Reason: arg.Reason, Now: now,
		})
		at, err := convert(added, err, instant)
		if err != nil || len(at) == 0 {
			return at, err
		}
		return at, q.AddCredentialScope(ctx, gen.AddCredentialScopeParams{Name: arg.Name, Given: list(given)})
	})
}

// RevokeCredential implements db.Operator.
func (s *Store) RevokeCredential(ctx context.Context, arg db.RevokeCredentialParams) ([]time.Time, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]time.Time, error) {
		at, err := q.RevokeCredential(ctx, gen.RevokeCredentialParams{Name: arg.Name, Actor: arg.Actor, Reason: arg.Reason, Now: now})
		return convert(at, err, instant)
	})
}

// FindCredential implements db.Worker.
func (s *Store) FindCredential(ctx context.Context, arg db.FindCredentialParams) ([]db.FindCredentialRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.FindCredentialRow, error) {
		rows, err := q.FindCredential(ctx, gen.FindCredentialParams{Name: arg.Name})
		return convert(rows, err, func(row gen.FindCredentialRow) db.FindCredentialRow { return db.FindCredentialRow(row) })
	})
}

// ListCredentials implements db.Inspector.
func (s *Store) ListCredentials(ctx context.Context, arg db.ListCredentialsParams) ([]db.ListCredentialsRow, error) {
	return read(ctx, s, func(q *gen.Queries, _ int64) ([]db.ListCredentialsRow, error) {
		rows, err := q.ListCredentials(ctx, gen.ListCredentialsParams{MaxRows: int64(arg.MaxRows)})
		return convert(rows, err, func(row gen.ListCredentialsRow) db.ListCredentialsRow {
			return db.ListCredentialsRow{
				Name: row.Name, CreatedAt: instant(row.CreatedAt), CreatedBy: row.CreatedBy, CreatedFor: row.CreatedFor,
				RevokedAt: instant(row.RevokedAt), RevokedBy: row.RevokedBy, RevokedFor: row.RevokedFor, Consumer: row.Consumer, Tenant: row.Tenant,
			}
		})
	})
}
