package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// PurgeDelivered implements db.Purger.
func (s *Store) PurgeDelivered(ctx context.Context, arg db.PurgeDeliveredParams) ([]db.PurgeDeliveredRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.PurgeDeliveredRow, error) {
		seen, err := q.PurgeSee(ctx, gen.PurgeSeeParams{
			Delivered: after(now, -arg.Keep), AllTenants: arg.AllTenants, Scope: list(arg.Scope), AfterID: arg.AfterID, MaxRows: int64(arg.MaxRows),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		rows, ids := []db.PurgeDeliveredRow{}, []int64{}
		for _, row := range seen {
			if row.Old {
				ids = append(ids, row.MessageID)
				rows = append(rows, db.PurgeDeliveredRow{ID: row.MessageID, Removed: true})
			}
		}
		return append(rows, db.PurgeDeliveredRow{ID: seen[len(seen)-1].MessageID}), erase(ctx, q, ids)
	})
}

// erase removes settled messages whole: their keys are free again.
func erase(ctx context.Context, q *gen.Queries, ids []int64) error {
	if err := q.OperateUnsettle(ctx, gen.OperateUnsettleParams{Ids: list(ids)}); err != nil {
		return err
	}
	return q.SettleErase(ctx, gen.SettleEraseParams{Ids: list(ids)})
}

// PurgeUndelivered implements db.Purger.
func (s *Store) PurgeUndelivered(ctx context.Context, arg db.PurgeUndeliveredParams) ([]db.PurgeUndeliveredRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.PurgeUndeliveredRow, error) {
		seen, err := q.PurgeUndeliveredSee(ctx, gen.PurgeUndeliveredSeeParams{
			Outcome: arg.Outcome, Cutoff: after(now, -arg.Keep), AfterAt: micros(arg.AfterAt), AfterID: arg.AfterID, MaxRows: int64(arg.MaxRows),
			AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		rows, ids := []db.PurgeUndeliveredRow{}, []int64{}
		for _, row := range seen {
			if row.InScope {
				ids = append(ids, row.MessageID)
				rows = append(rows, db.PurgeUndeliveredRow{ID: row.MessageID, SettledAt: db.Never, Removed: true})
			}
		}
		if err := unblock(ctx, q, ids); err != nil {
			return nil, err
		}
		last := seen[len(seen)-1]
		return append(rows, db.PurgeUndeliveredRow{ID: last.MessageID, SettledAt: instant(last.SettledAt)}), erase(ctx, q, ids)
	})
}

// ExpireUnleased implements db.Purger.
func (s *Store) ExpireUnleased(ctx context.Context, arg db.ExpireUnleasedParams) ([]db.ExpireUnleasedRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.ExpireUnleasedRow, error) {
		seen, err := q.ExpireUnleasedSee(ctx, gen.ExpireUnleasedSeeParams{
			Cutoff: after(now, -arg.Grace), AfterID: arg.AfterID, Examine: int64(arg.Examine), AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		rows, verdicts := []db.ExpireUnleasedRow{}, []verdict{}
		for _, row := range seen {
			if row.Old {
				verdicts = append(verdicts, verdict{ID: row.MessageID, Reason: "never leased within its age"})
				rows = append(rows, db.ExpireUnleasedRow{ID: row.MessageID, Expired: true})
			}
		}
		_, err = conclude(ctx, q, now, "expired", verdicts, false)
		return append(rows, db.ExpireUnleasedRow{ID: seen[len(seen)-1].MessageID}), err
	})
}

// PurgeAudit implements db.Purger.
func (s *Store) PurgeAudit(ctx context.Context, arg db.PurgeAuditParams) ([]db.PurgeAuditRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.PurgeAuditRow, error) {
		seen, err := q.PurgeAuditSee(ctx, gen.PurgeAuditSeeParams{
			Cutoff: after(now, -arg.Keep), AfterID: arg.AfterID, MaxRows: int64(arg.MaxRows), AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		rows, ids := []db.PurgeAuditRow{}, []int64{}
		for _, row := range seen {
			if row.Old {
				ids = append(ids, row.ID)
				rows = append(rows, db.PurgeAuditRow{ID: row.ID, Removed: true})
			}
		}
		return append(rows, db.PurgeAuditRow{ID: seen[len(seen)-1].ID}), q.PurgeAuditErase(ctx, gen.PurgeAuditEraseParams{Ids: list(ids)})
	})
}

// PurgeWorkers implements db.Purger.
func (s *Store) PurgeWorkers(ctx context.Context, arg db.PurgeWorkersParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		return q.PurgeWorkers(ctx, gen.PurgeWorkersParams{Cutoff: after(now, -arg.Keep), MaxRows: int64(arg.MaxRows)})
	})
}

// PurgeEvents implements db.Purger.
func (s *Store) PurgeEvents(ctx context.Context, arg db.PurgeEventsParams) ([]db.PurgeEventsRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.PurgeEventsRow, error) {
		seen, err := q.PurgeEventsSee(ctx, gen.PurgeEventsSeeParams{Cutoff: after(now, -arg.Keep), Force: arg.Force, MaxRows: int64(arg.MaxRows)})
		if err != nil {
			return nil, err
		}
		old := 0
		for old < len(seen) && seen[old].Goes { // what stays keeps all that comes after it
			old++
		}
		if old > 0 {
			last := seen[old-1]
			if err := q.PurgeEventsErase(ctx, gen.PurgeEventsEraseParams{Position: last.Position}); err != nil {
				return nil, err
			}
			err = q.PurgeEventsMark(ctx, gen.PurgeEventsMarkParams{Position: last.Position, Digest: last.Digest})
		}
		return []db.PurgeEventsRow{{Removed: int64(old)}}, err
	})
}

// PurgeClaims implements db.Purger.
func (s *Store) PurgeClaims(ctx context.Context, arg db.PurgeClaimsParams) ([]db.PurgeClaimsRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.PurgeClaimsRow, error) {
		seen, err := q.PurgeClaimsSee(ctx, gen.PurgeClaimsSeeParams{
			Cutoff: after(now, -arg.Keep), AfterAt: micros(arg.AfterAt), AfterTenant: arg.AfterTenant, AfterScope: arg.AfterScope, AfterKey: arg.AfterKey,
			MaxRows: int64(arg.MaxRows), AllTenants: arg.AllTenants, Tenants: list(arg.Tenants),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		var removed int64
		for _, row := range seen {
			if !row.Goes {
				continue
			}
			if err := q.PurgeClaimsErase(ctx, gen.PurgeClaimsEraseParams{Tenant: row.Tenant, Scope: row.Scope, Key: row.Key}); err != nil {
				return nil, err
			}
			removed++
		}
		last := seen[len(seen)-1]
		return []db.PurgeClaimsRow{{OverAt: instant(last.OverAt), Tenant: last.Tenant, Scope: last.Scope, Key: last.Key, Removed: removed}}, nil
	})
}

// CountOld implements db.Purger.
func (s *Store) CountOld(ctx context.Context, arg db.CountOldParams) ([]db.CountOldRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.CountOldRow, error) {
		cutoff := func(keep int64) int64 {
			if keep == 0 {
				return 0 // kept for ever
			}
			return after(now, -keep)
		}
		seen, err := q.PurgeSee(ctx, gen.PurgeSeeParams{
			Delivered: cutoff(arg.KeepDelivered), Dead: cutoff(arg.KeepDead), Cancelled: cutoff(arg.KeepCancelled), Expired: cutoff(arg.KeepExpired),
			AllTenants: arg.AllTenants, Scope: list(arg.Scope), AfterID: arg.AfterID, MaxRows: int64(arg.MaxRows),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		old := map[string]int64{}
		for _, row := range seen {
			if row.Old {
				old[row.Outcome]++
			}
		}
		rows := []db.CountOldRow{}
		for outcome, n := range old {
			rows = append(rows, db.CountOldRow{Outcome: outcome, Old: n})
		}
		return append(rows, db.CountOldRow{Last: seen[len(seen)-1].MessageID}), nil
	})
}

// CountOverdue implements db.Purger.
func (s *Store) CountOverdue(ctx context.Context, arg db.CountOverdueParams) ([]db.CountOverdueRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.CountOverdueRow, error) {
		seen, err := q.ExpireUnleasedSee(ctx, gen.ExpireUnleasedSeeParams{
			Cutoff: after(now, -arg.Grace), AfterID: arg.AfterID, Examine: int64(arg.Examine), AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
		var row db.CountOverdueRow
		for _, looked := range seen {
			if row.Last = looked.MessageID; looked.Old {
				row.Overdue++
			}
		}
		return []db.CountOverdueRow{row}, err
	})
}
