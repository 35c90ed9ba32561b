package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// An OrderKey names the effects that run one at a time.
type OrderKey struct {
	Tenant, Consumer, Target, Key string
}

// Unblock frees an order key that a dead message holds (Policy.BlockOnDead), so that the next message of the key goes on; the dead one
// stays dead. False when the key is not blocked. Retryable.
func (b *Box) Unblock(ctx context.Context, scope Scope, key OrderKey, by By) (bool, error) {
	var found problems
	scope.check(&found)
	found.optionalName("Tenant", key.Tenant, maxName)
	found.name("Consumer", key.Consumer, maxName)
	found.name("Target", key.Target, maxName)
	found.required("Key", key.Key, maxName)
	if !scope.Includes(key.Tenant) {
		found.add("Tenant", "is outside of the scope")
	}
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return false, failed("unblock", err)
	}
	freed, err := b.store.UnblockKey(ctx, db.UnblockKeyParams{
		Consumer: key.Consumer, Target: key.Target, Tenant: key.Tenant, OrderKey: key.Key, Actor: by.Actor, Reason: by.Reason,
	})
	return len(freed) > 0, failed("unblock", err)
}
