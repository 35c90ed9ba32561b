package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A SuccessorPlan asks for the next messages of order keys that were just settled.
type SuccessorPlan struct {
	Consumer *Consumer
	// Worker, As, Scope and For are as in LeasePlan.
	Worker int64
	As     *Identity
	Scope  Scope
	For    time.Duration
	// Kinds the worker handles; none leases nothing and sends no query.
	Kinds []string
	// Settled are the messages just settled; those without an order key do not count.
	Settled []Message
}

// LeaseSuccessors leases the next message of each order key in Settled, if it is due and free, so that a busy key need not wait for a
// pass. The answer is in order of id. One statement for each 1,000 keys. After an error the messages returned are leased nevertheless;
// whether others are is unknown, as with LeaseLanes. Retryable.
func (b *Box) LeaseSuccessors(ctx context.Context, plan SuccessorPlan) ([]Message, error) {
	var found problems
	found.consumer(plan.Consumer)
	found.kinds(plan.Kinds)
	plan.Scope.check(&found)
	length := found.lease("For", plan.For)
	if err := found.refused(ctx); err != nil {
		return nil, failed("lease successors", err)
	}
	if err := b.admits(plan.As, plan.Consumer, plan.Scope); err != nil || len(plan.Kinds) == 0 {
		return nil, failed("lease successors", err)
	}
	var messages []Message
	for keys := range slices.Chunk(orderKeys(plan.Settled), maxBatch) {
		more, err := b.leaseSuccessors(ctx, plan, keys, length)
		if err != nil {
			return messages, failed("lease successors", err)
		}
		messages = append(messages, more...)
	}
	slices.SortFunc(messages, func(a, b Message) int { return cmp.Compare(a.ID, b.ID) })
	return messages, nil
}

func (b *Box) leaseSuccessors(ctx context.Context, plan SuccessorPlan, keys []orderKey, length int64) ([]Message, error) {
	token := newToken()
	params := db.LeaseSuccessorsParams{
		Lease:        length,
		Consumer:     plan.Consumer.name,
		Target:       plan.Consumer.target,
		LongestLease: micros(db.LongestLease),
		AllTenants:   plan.Scope.all,
		Scope:        plan.Scope.Names(),
		MaxRows:      int32(len(keys)),
		Token:        token[:],
		Worker:       plan.Worker,
	}
	for _, key := range keys {
		params.Tenants = append(params.Tenants, key.tenant)
		params.OrderKeys = append(params.OrderKeys, key.key)
	}
	for _, kind := range distinct(plan.Kinds) {
		params.Kinds = append(params.Kinds, kind)
		params.AttemptLimits = append(params.AttemptLimits, int32(plan.Consumer.policy.MaxAttempts))
		params.MaxAges = append(params.MaxAges, plan.Consumer.maxAge(kind))
	}
	rows, err := b.store.LeaseSuccessors(ctx, params)
	if err != nil {
		return nil, err
	}
	messages := make([]Message, len(rows))
	for i, row := range rows {
		messages[i] = b.newMessage(plan.Consumer, row, token)
	}
	b.observer.Leased(ctx, messages)
	return messages, nil
}

type orderKey struct{ tenant, key string }

// orderKeys are the distinct order keys of some messages, sorted.
func orderKeys(messages []Message) []orderKey {
	var keys []orderKey
	for _, m := range messages {
		if m.OrderKey != "" {
			keys = append(keys, orderKey{m.Tenant, m.OrderKey})
		}
	}
	slices.SortFunc(keys, func(a, b orderKey) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.key, b.key))
	})
	return slices.Compact(keys)
}
