package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// A Resolution is what an operator decides about a parked message.
type Resolution int

const (
	// AsDelivered: the effect was performed.
	AsDelivered Resolution = iota + 1
	// AsDead: it was not and shall not be.
	AsDead
	// AsDeadBlocking is AsDead, and the order key stays blocked as under Policy.BlockOnDead.
	AsDeadBlocking
	// AsRetry: it shall be tried again, at once, with one more lease at least; its age starts anew. It stays unsure.
	AsRetry
)

// Resolve decides parked messages. At most 1,000 ids; an answer each, in order: Done, NotParked, or NotFound for what is not in the scope.
// After an error call again: what was done answers NotParked then.
func (b *Box) Resolve(ctx context.Context, scope Scope, ids []int64, as Resolution, by By) ([]Acted, error) {
	op := operation{verb: "resolve", missed: NotParked, unknown: NotFound}
	switch as {
	case AsDelivered:
		op.done = StateDelivered
	case AsDead, AsDeadBlocking:
		op.done = StateDead
	case AsRetry:
		op.done = StatePending
	default:
		var found problems
		found.add("Resolution", "is none of AsDelivered, AsDead, AsDeadBlocking and AsRetry")
		return nil, failed(op.verb, found.err())
	}
	op.run = func(ids []int64, by By) ([]int64, error) {
		if as == AsRetry {
			return b.store.ResolveRetry(ctx, db.ResolveRetryParams{
				Ids: ids, AllTenants: scope.all, Scope: scope.Names(), Actor: by.Actor, Reason: by.Reason,
			})
		}
		return b.store.ResolveSettled(ctx, db.ResolveSettledParams{
			Ids: ids, AllTenants: scope.all, Scope: scope.Names(), Actor: by.Actor, Reason: by.Reason,
			Outcome: string(op.done), BlockOnDead: as == AsDeadBlocking, LongestLease: micros(db.LongestLease),
		})
	}
	return b.operate(ctx, scope, ids, by, op)
}
