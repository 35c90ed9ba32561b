package sqlitedb

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// An act is what an audit row says of one message, or of none.
type act struct {
	ID     int64  `json:"id"`
	Tenant string `json:"tenant"`
	Detail string `json:"detail"`
}

// idsOfActs are the messages that acts are about.
func idsOfActs(acts []act) []int64 {
	ids := make([]int64, len(acts))
	for i, a := range acts {
		ids[i] = a.ID
	}
	return ids
}

// An operator is who acts, how and why.
type operator struct{ action, actor, reason string }

func (o operator) audit(ctx context.Context, q *gen.Queries, now int64, acts ...act) error {
	return q.OperateAudit(ctx, gen.OperateAuditParams{Now: now, Action: o.action, Actor: o.actor, Reason: o.reason, Given: list(acts)})
}

// settle records the acts and ends their messages, which nobody settles but the operator.
func (o operator) settle(ctx context.Context, q *gen.Queries, now int64, acts []act, outcome, cause string) ([]int64, error) {
	if err := o.audit(ctx, q, now, acts...); err != nil {
		return nil, err
	}
	if err := q.OperateRevoke(ctx, gen.OperateRevokeParams{Ids: list(idsOfActs(acts))}); err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(acts))
	for i, a := range acts {
		verdicts[i] = verdict{ID: a.ID, Cause: cause, Reason: o.reason, ordered: true}
	}
	return conclude(ctx, q, now, outcome, verdicts, false)
}

// CancelOpen implements db.Operator.
func (s *Store) CancelOpen(ctx context.Context, arg db.CancelOpenParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		rows, err := q.OperateOpen(ctx, gen.OperateOpenParams{Ids: list(arg.Ids), AllTenants: arg.AllTenants, Scope: list(arg.Scope)})
		acts, err := convert(rows, err, func(row gen.OperateOpenRow) act {
			if row.Parked {
				return act{row.MessageID, row.Tenant, "was parked"}
			}
			return act{row.MessageID, row.Tenant, "was pending"}
		})
		if err != nil {
			return nil, err
		}
		return operator{"cancel", arg.Actor, arg.Reason}.settle(ctx, q, now, acts, "cancelled", "")
	})
}

// ReplayDead implements db.Operator.
func (s *Store) ReplayDead(ctx context.Context, arg db.ReplayDeadParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		attempts := "; attempts kept"
		if arg.Reset {
			attempts = "; attempts reset"
		}
		rows, err := q.ReplayDeadPick(ctx, gen.ReplayDeadPickParams{Ids: list(arg.Ids), AllTenants: arg.AllTenants, Scope: list(arg.Scope)})
		acts, err := convert(rows, err, func(row gen.ReplayDeadPickRow) act {
			return act{row.MessageID, row.Tenant, "was dead, " + row.Cause + attempts}
		})
		if err != nil {
			return nil, err
		}
		if err := (operator{"replay", arg.Actor, arg.Reason}).audit(ctx, q, now, acts...); err != nil {
			return nil, err
		}
		ids := idsOfActs(acts)
		if err := q.ReplayDeadEnqueue(ctx, gen.ReplayDeadEnqueueParams{Ids: list(ids), Reset: arg.Reset, Now: now}); err != nil {
			return nil, err
		}
		if err := unblock(ctx, q, ids); err != nil {
			return nil, err
		}
		return ids, q.OperateUnsettle(ctx, gen.OperateUnsettleParams{Ids: list(ids)})
	})
}

// unblock frees the order keys that dead messages hold.
func unblock(ctx context.Context, q *gen.Queries, ids []int64) error {
	for _, id := range ids {
		if err := q.OperateUnblock(ctx, gen.OperateUnblockParams{MessageID: id}); err != nil {
			return err
		}
	}
	return nil
}

// resolved returns the acts on those of the messages that are parked.
func resolved(ctx context.Context, q *gen.Queries, ids []int64, allTenants bool, scope []string, as string) ([]act, error) {
	rows, err := q.OperateOpen(ctx, gen.OperateOpenParams{Ids: list(ids), AllTenants: allTenants, Scope: list(scope), Parked: true})
	return convert(rows, err, func(row gen.OperateOpenRow) act { return act{row.MessageID, row.Tenant, "was parked; " + as} })
}

// ResolveSettled implements db.Operator.
func (s *Store) ResolveSettled(ctx context.Context, arg db.ResolveSettledParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		acts, err := resolved(ctx, q, arg.Ids, arg.AllTenants, arg.Scope, arg.Outcome)
		if err != nil {
			return nil, err
		}
		cause := ""
		if arg.Outcome == "dead" {
			cause = "permanent"
		}
		if arg.BlockOnDead && arg.Outcome == "dead" {
			if _, err := takeOrder(ctx, q, now, idsOfActs(acts), never, true, arg.LongestLease); err != nil {
				return nil, err
			}
		}
		return operator{"resolve", arg.Actor, arg.Reason}.settle(ctx, q, now, acts, arg.Outcome, cause)
	})
}

// ResolveRetry implements db.Operator.
func (s *Store) ResolveRetry(ctx context.Context, arg db.ResolveRetryParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		acts, err := resolved(ctx, q, arg.Ids, arg.AllTenants, arg.Scope, "retry")
		if err != nil {
			return nil, err
		}
		if err := (operator{"resolve", arg.Actor, arg.Reason}).audit(ctx, q, now, acts...); err != nil {
			return nil, err
		}
		ids := idsOfActs(acts)
		return ids, q.ResolveRetryAgain(ctx, gen.ResolveRetryAgainParams{Ids: list(ids), Now: now})
	})
}

// PauseLane implements db.Operator.
func (s *Store) PauseLane(ctx context.Context, arg db.PauseLaneParams) ([]time.Time, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]time.Time, error) {
		return []time.Time{instant(now)}, pause(ctx, q, now, arg)
	})
}

func pause(ctx context.Context, q *gen.Queries, now int64, arg db.PauseLaneParams) error {
	detail := arg.Consumer + " " + arg.Target + " " + arg.Kind
	if err := (operator{"pause", arg.Actor, arg.Reason}).audit(ctx, q, now, act{Tenant: arg.Tenant, Detail: detail}); err != nil {
		return err
	}
	return q.PauseLane(ctx, gen.PauseLaneParams{
		Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, Tenant: arg.Tenant, Mode: arg.Mode, Actor: arg.Actor, Reason: arg.Reason,
		Now: now,
	})
}

// ResumeLane implements db.Operator.
func (s *Store) ResumeLane(ctx context.Context, arg db.ResumeLaneParams) ([]time.Time, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]time.Time, error) {
		pausedAt, err := q.ResumeLane(ctx, gen.ResumeLaneParams{Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, Tenant: arg.Tenant})
		lifted, err := convert(pausedAt, err, instant)
		if err != nil || len(lifted) == 0 {
			return lifted, err
		}
		detail := arg.Consumer + " " + arg.Target + " " + arg.Kind
		return lifted, operator{"resume", arg.Actor, arg.Reason}.audit(ctx, q, now, act{Tenant: arg.Tenant, Detail: detail})
	})
}

// ReleaseWorker implements db.Operator.
func (s *Store) ReleaseWorker(ctx context.Context, arg db.ReleaseWorkerParams) ([]db.ReleaseWorkerRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.ReleaseWorkerRow, error) {
		seen, err := q.ReleaseWorkerSee(ctx, gen.ReleaseWorkerSeeParams{
			AfterID: arg.AfterID, Examine: int64(arg.Examine), Worker: arg.Worker, AllTenants: arg.AllTenants, Scope: list(arg.Scope),
		})
		if err != nil || len(seen) == 0 {
			return nil, err
		}
		rows, acts := []db.ReleaseWorkerRow{}, []act{}
		for _, row := range seen {
			if row.Theirs {
				acts = append(acts, act{row.MessageID, row.Tenant, arg.Worker})
				rows = append(rows, db.ReleaseWorkerRow{ID: row.MessageID, Released: true})
			}
		}
		ids := idsOfActs(acts)
		if err := (operator{"release", arg.Actor, arg.Reason}).audit(ctx, q, now, acts...); err != nil {
			return nil, err
		}
		if err := q.OperateRevoke(ctx, gen.OperateRevokeParams{Ids: list(ids)}); err != nil {
			return nil, err
		}
		return append(rows, db.ReleaseWorkerRow{ID: seen[len(seen)-1].MessageID}), unorder(ctx, q, ids)
	})
}

// UnblockKey implements db.Operator.
func (s *Store) UnblockKey(ctx context.Context, arg db.UnblockKeyParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		ids, err := q.UnblockKey(ctx, gen.UnblockKeyParams{
			Consumer: arg.Consumer, Target: arg.Target, Tenant: arg.Tenant, OrderKey: arg.OrderKey,
		})
		acts, err := convert(ids, err, func(id int64) act { return act{id, arg.Tenant, arg.OrderKey} })
		if err != nil {
			return nil, err
		}
		return ids, operator{"unblock", arg.Actor, arg.Reason}.audit(ctx, q, now, acts...)
	})
}
