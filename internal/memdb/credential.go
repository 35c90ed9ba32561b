package memdb

import (
	"cmp"
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

func compareScopes(a, b tables.CredentialScope) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Tenant, b.Tenant))
}

// AddCredential implements db.Operator.
func (s *Store) AddCredential(ctx context.Context, arg db.AddCredentialParams) ([]time.Time, error) {
	return run(ctx, s, "AddCredential", arg, func(st *statement) []time.Time {
		if _, taken := st.credentials.rows[arg.Name]; taken || !st.parallel(len(arg.Consumers), len(arg.Tenants)) {
			return []time.Time{}
		}
		st.credentials.put(st, tables.Credential{
			CreatedAt: st.now, RevokedAt: tables.Forever, Iterations: arg.Iterations, Name: arg.Name, CreatedBy: arg.Actor, CreatedFor: arg.Reason,
			Salt: exact(arg.Salt), Hash: exact(arg.Hash),
		})
		for i, consumer := range arg.Consumers {
			st.scopes.put(st, tables.CredentialScope{Name: arg.Name, Consumer: consumer, Tenant: arg.Tenants[i]})
		}
		return []time.Time{st.now}
	})
}

// RevokeCredential implements db.Operator.
func (s *Store) RevokeCredential(ctx context.Context, arg db.RevokeCredentialParams) ([]time.Time, error) {
	return run(ctx, s, "RevokeCredential", arg, func(st *statement) []time.Time {
		c, found := st.credentials.rows[arg.Name]
		if !found || !c.RevokedAt.Equal(tables.Forever) {
			return []time.Time{}
		}
		c.RevokedAt, c.RevokedBy, c.RevokedFor = st.now, arg.Actor, arg.Reason
		st.credentials.put(st, c)
		return []time.Time{st.now}
	})
}

// FindCredential implements db.Worker.
func (s *Store) FindCredential(ctx context.Context, arg db.FindCredentialParams) ([]db.FindCredentialRow, error) {
	return run(ctx, s, "FindCredential", arg, func(st *statement) []db.FindCredentialRow {
		rows, c := []db.FindCredentialRow{}, st.credentials.rows[arg.Name]
		for scope := range st.scopes.rows {
			if scope.Name == arg.Name && c.Name == arg.Name {
				rows = append(rows, db.FindCredentialRow{
					Salt: exact(c.Salt), Hash: exact(c.Hash), Iterations: c.Iterations, Revoked: !c.RevokedAt.Equal(tables.Forever),
					Consumer: scope.Consumer, Tenant: scope.Tenant,
				})
			}
		}
		return rows
	})
}

// ListCredentials implements db.Inspector.
func (s *Store) ListCredentials(ctx context.Context, arg db.ListCredentialsParams) ([]db.ListCredentialsRow, error) {
	return run(ctx, s, "ListCredentials", arg, func(st *statement) []db.ListCredentialsRow {
		rows := []db.ListCredentialsRow{}
		for _, scope := range st.scopes.sorted(compareScopes) {
			if c, found := st.credentials.rows[scope.Name]; found {
				rows = append(rows, db.ListCredentialsRow{
					Name: c.Name, CreatedAt: c.CreatedAt, CreatedBy: c.CreatedBy, CreatedFor: c.CreatedFor, RevokedAt: c.RevokedAt,
					RevokedBy: c.RevokedBy, RevokedFor: c.RevokedFor, Consumer: scope.Consumer, Tenant: scope.Tenant,
				})
			}
		}
		return first(rows, arg.MaxRows)
	})
}
