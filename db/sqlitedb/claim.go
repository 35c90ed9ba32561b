package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// Claim implements db.Claimer.
func (s *Store) Claim(ctx context.Context, tx db.Tx, arg db.ClaimParams) ([]db.ClaimRow, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]db.ClaimRow, error) {
		rows, err := q.Claim(whole, gen.ClaimParams{
			Tenant: arg.Tenant, Scope: arg.Scope, Key: arg.Key, Digest: arg.Digest, Token: arg.Token, ClaimedAt: now, HeldUntil: after(now, arg.Hold),
		})
		return convert(rows, err, func(row gen.ClaimRow) db.ClaimRow { return db.ClaimRow(row) })
	})
}

// TakeClaim implements db.Claimer.
func (s *Store) TakeClaim(ctx context.Context, tx db.Tx, arg db.TakeClaimParams) ([]db.TakeClaimRow, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]db.TakeClaimRow, error) {
		rows, err := q.TakeClaim(whole, gen.TakeClaimParams{
			Tenant: arg.Tenant, Scope: arg.Scope, Key: arg.Key, Digest: arg.Digest, Token: arg.Token, Now: now, HeldUntil: after(now, arg.Hold),
		})
		return convert(rows, err, func(row gen.TakeClaimRow) db.TakeClaimRow { return db.TakeClaimRow(row) })
	})
}

// EndClaim implements db.Claimer.
func (s *Store) EndClaim(ctx context.Context, tx db.Tx, arg db.EndClaimParams) ([]int64, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]int64, error) {
		return q.EndClaim(whole, gen.EndClaimParams{
			Tenant: arg.Tenant, Scope: arg.Scope, Key: arg.Key, Token: arg.Token, State: int64(arg.State), Reason: arg.Reason, Result: arg.Result, Now: now,
		})
	})
}

// RecordClaim implements db.Claimer.
func (s *Store) RecordClaim(ctx context.Context, tx db.Tx, arg db.RecordClaimParams) ([]int64, error) {
	return callers(ctx, s, tx, writes, func(whole context.Context, q *gen.Queries, now int64) ([]int64, error) {
		return q.RecordClaim(whole, gen.RecordClaimParams{
			Tenant: arg.Tenant, Scope: arg.Scope, Key: arg.Key, Digest: arg.Digest, State: int64(arg.State), Reason: arg.Reason, Now: now,
		})
	})
}

// FindClaims implements db.Claimer.
func (s *Store) FindClaims(ctx context.Context, tx db.Tx, arg db.FindClaimsParams) ([]db.FindClaimsRow, error) {
	type asked struct {
		Tenant string `json:"tenant"`
		Scope  string `json:"scope"`
		Key    string `json:"key"`
		Digest string `json:"digest"`
	}
	given := make([]asked, len(arg.Keys))
	for i := range given {
		given[i] = asked{arg.Tenants[i], arg.Scopes[i], arg.Keys[i], hexed(arg.Digests[i])}
	}
	return callers(ctx, s, tx, reads, func(whole context.Context, q *gen.Queries, now int64) ([]db.FindClaimsRow, error) {
		rows, err := q.FindClaims(whole, gen.FindClaimsParams{Now: now, Given: list(given)})
		return convert(rows, err, func(row gen.FindClaimsRow) db.FindClaimsRow {
			return db.FindClaimsRow{
				Ordinal: row.Ordinal, SameDigest: row.SameDigest, State: row.State, Epoch: row.Epoch, ClaimedAt: row.ClaimedAt,
				HeldUntil: row.HeldUntil, EndedAt: row.EndedAt, Over: row.IsOver, Reason: row.Reason,
				Result: hexed(row.Result), Digest: hexed(row.Digest),
			}
		})
	})
}
