package memdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

type claimKey struct{ tenant, scope, key string }

func keyOfClaim(c tables.Claim) claimKey { return claimKey{c.Tenant, c.Scope, c.Key} }

// claimed finds the claim of a key, as this transaction sees it.
func (tx *Tx) claimed(key claimKey) (tables.Claim, bool) {
	if c, mine := tx.claims[key]; mine {
		return c, true
	}
	c, found := tx.store.claims.rows[key]
	return c, found
}

// keep writes a claim whose key no other transaction has locked, and locks it.
func (tx *Tx) keep(c tables.Claim) error {
	if err := verify("claim", claimChecks, c); err != nil {
		return err
	}
	tx.store.locks[keyOfClaim(c)] = tx
	tx.claims[keyOfClaim(c)] = c
	return nil
}

// Claim implements db.Claimer.
func (s *Store) Claim(ctx context.Context, tx db.Tx, arg db.ClaimParams) ([]db.ClaimRow, error) {
	return in(ctx, s, "Claim", tx, arg, func(tx *Tx) ([]db.ClaimRow, error) {
		now := clock()
		c := tables.Claim{
			Tenant: arg.Tenant, Scope: arg.Scope, Key: arg.Key, Digest: exact(arg.Digest), Token: exact(arg.Token), Epoch: 1,
			ClaimedAt: now, HeldUntil: after(now, arg.Hold), EndedAt: tables.Forever, Result: []byte{},
		}
		if err := tx.await(ctx, keyOfClaim(c)); err != nil {
			return nil, err
		}
		if _, taken := tx.claimed(keyOfClaim(c)); taken {
			return []db.ClaimRow{}, nil
		}
		return []db.ClaimRow{{Epoch: c.Epoch, HeldUntil: c.HeldUntil.UnixMicro()}}, tx.keep(c)
	})
}

// TakeClaim implements db.Claimer.
func (s *Store) TakeClaim(ctx context.Context, tx db.Tx, arg db.TakeClaimParams) ([]db.TakeClaimRow, error) {
	return in(ctx, s, "TakeClaim", tx, arg, func(tx *Tx) ([]db.TakeClaimRow, error) {
		key := claimKey{arg.Tenant, arg.Scope, arg.Key}
		if err := tx.await(ctx, key); err != nil {
			return nil, err
		}
		now := clock()
		c, found := tx.claimed(key)
		free := c.State == db.ClaimFailed || c.State == db.ClaimHeld && !c.HeldUntil.After(now)
		if !found || !free || !bytes.Equal(c.Digest, arg.Digest) {
			return []db.TakeClaimRow{}, nil
		}
		c.State, c.Token, c.Epoch, c.ClaimedAt, c.HeldUntil = db.ClaimHeld, exact(arg.Token), c.Epoch+1, now, after(now, arg.Hold)
		c.EndedAt, c.Reason = tables.Forever, ""
		return []db.TakeClaimRow{{Epoch: c.Epoch, HeldUntil: c.HeldUntil.UnixMicro()}}, tx.keep(c)
	})
}

// EndClaim implements db.Claimer.
func (s *Store) EndClaim(ctx context.Context, tx db.Tx, arg db.EndClaimParams) ([]int64, error) {
	return in(ctx, s, "EndClaim", tx, arg, func(tx *Tx) ([]int64, error) {
		key := claimKey{arg.Tenant, arg.Scope, arg.Key}
		if err := tx.await(ctx, key); err != nil {
			return nil, err
		}
		c, found := tx.claimed(key)
		if !found || c.State != db.ClaimHeld || !bytes.Equal(c.Token, arg.Token) {
			return []int64{}, nil
		}
		c.State, c.Token, c.HeldUntil, c.EndedAt, c.Reason, c.Result = arg.State, db.FreeToken, db.Never, clock(), arg.Reason, exact(arg.Result)
		return []int64{c.Epoch}, tx.keep(c)
	})
}

// RecordClaim implements db.Claimer.
func (s *Store) RecordClaim(ctx context.Context, tx db.Tx, arg db.RecordClaimParams) ([]int64, error) {
	return in(ctx, s, "RecordClaim", tx, arg, func(tx *Tx) ([]int64, error) {
		now := clock()
		c := tables.Claim{
			Tenant: arg.Tenant, Scope: arg.Scope, Key: arg.Key, Digest: exact(arg.Digest), State: arg.State, Reason: arg.Reason,
			Token: db.FreeToken, Epoch: 1, ClaimedAt: now, HeldUntil: db.Never, EndedAt: now, Result: []byte{},
		}
		if err := tx.await(ctx, keyOfClaim(c)); err != nil {
			return nil, err
		}
		if _, taken := tx.claimed(keyOfClaim(c)); taken {
			return []int64{}, nil
		}
		return []int64{c.Epoch}, tx.keep(c)
	})
}

// FindClaims implements db.Claimer.
func (s *Store) FindClaims(ctx context.Context, tx db.Tx, arg db.FindClaimsParams) ([]db.FindClaimsRow, error) {
	return in(ctx, s, "FindClaims", tx, arg, func(tx *Tx) ([]db.FindClaimsRow, error) {
		st := &statement{Store: s, now: clock()}
		if !st.parallel(len(arg.Tenants), len(arg.Scopes), len(arg.Keys), len(arg.Digests)) {
			return nil, st.err
		}
		rows := []db.FindClaimsRow{}
		for i := range arg.Keys {
			c, found := tx.claimed(claimKey{arg.Tenants[i], arg.Scopes[i], arg.Keys[i]})
			if !found {
				continue
			}
			rows = append(rows, db.FindClaimsRow{
				Ordinal: int32(i + 1), SameDigest: bytes.Equal(c.Digest, arg.Digests[i]), State: c.State, Epoch: c.Epoch, ClaimedAt: c.ClaimedAt.UnixMicro(),
				HeldUntil: c.HeldUntil.UnixMicro(), EndedAt: c.EndedAt.UnixMicro(), Over: c.State == db.ClaimHeld && !c.HeldUntil.After(st.now), Reason: c.Reason,
				Result: hex.EncodeToString(c.Result), Digest: hex.EncodeToString(c.Digest),
			})
		}
		return rows, nil
	})
}

// PurgeClaims implements db.Purger.
func (s *Store) PurgeClaims(ctx context.Context, arg db.PurgeClaimsParams) ([]db.PurgeClaimsRow, error) {
	return run(ctx, s, "PurgeClaims", arg, func(st *statement) []db.PurgeClaimsRow {
		byEnd := func(a, b tables.Claim) int { return cmp.Or(overAt(a).Compare(overAt(b)), compareClaims(a, b)) }
		place := tables.Claim{State: db.ClaimCompleted, EndedAt: arg.AfterAt, Tenant: arg.AfterTenant, Scope: arg.AfterScope, Key: arg.AfterKey}
		cutoff := after(st.now, -arg.Keep)
		over := slices.DeleteFunc(st.claims.sorted(byEnd), func(c tables.Claim) bool { return !overAt(c).Before(cutoff) || byEnd(c, place) <= 0 })
		seen := first(over, arg.MaxRows)
		if len(seen) == 0 {
			return []db.PurgeClaimsRow{}
		}
		last := seen[len(seen)-1]
		row := db.PurgeClaimsRow{OverAt: overAt(last), Tenant: last.Tenant, Scope: last.Scope, Key: last.Key}
		for _, c := range seen {
			if inScope(arg.AllTenants, arg.Tenants, c.Tenant) && !st.deliverable(c) {
				st.claims.remove(st, keyOfClaim(c))
				row.Removed++
			}
		}
		return []db.PurgeClaimsRow{row}
	})
}

// overAt is since when nobody holds a claim.
func overAt(c tables.Claim) time.Time {
	if c.State == db.ClaimHeld {
		return c.HeldUntil
	}
	return c.EndedAt
}

// deliverable says whether a claim is the receipt of an event that a bus may still deliver.
func (st *statement) deliverable(c tables.Claim) bool {
	bus, _, _ := strings.Cut(c.Scope, ":")
	for _, m := range st.messages.rows {
		if m.Tenant == c.Tenant && m.Consumer == bus && m.Key == bus+":"+c.Key+":0" {
			settled, found := st.settlements.rows[m.ID]
			return !found || settled.Outcome == "dead"
		}
	}
	return false
}
