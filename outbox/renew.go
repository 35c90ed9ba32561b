package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A Renewal is what became of one lease.
type Renewal struct {
	// Until is when the lease ends now; zero when it was not renewed.
	Until time.Time
	// Err is nil, ErrLeaseLost, ErrCancelled, or ErrPaused: then the lease is renewed too, so that it can be released.
	Err error
}

// Renew extends leases to length from now and never shortens one, but for one that ends later than the longest lease from now, as after a
// step back of the database's clock. There is one Renewal for each message, in input order; a lease that is
// over is never renewed, even if nobody took the message since. An error says nothing about any of them: try again while the leases last.
// length is bounded as LeasePlan.For is. One statement for each 1,000 messages, one more when leases are gone.
func (b *Box) Renew(ctx context.Context, messages []Message, length time.Duration) ([]Renewal, error) {
	var found problems
	lease := found.lease("length", length)
	for i, m := range messages {
		found.at(i).held(m)
	}
	if err := found.refused(ctx); err != nil {
		return nil, failed("renew", err)
	}
	renewals := make([]Renewal, len(messages))
	for _, batch := range batches(places(len(messages)), func(i int) int64 { return messages[i].ID }) {
		if err := b.renew(ctx, messages, batch, lease, renewals); err != nil {
			return nil, failed("renew", err)
		}
	}
	return renewals, nil
}

func (b *Box) renew(ctx context.Context, messages []Message, places []int, lease int64, renewals []Renewal) error {
	ids, tokens := heldArrays(messages, places)
	rows, err := b.store.Renew(ctx, db.RenewParams{Lease: lease, LongestLease: micros(db.LongestLease), Ids: ids, Tokens: tokens})
	if err != nil {
		return err
	}
	renewed := make(map[int64]db.RenewRow, len(rows))
	for _, row := range rows {
		renewed[row.ID] = row
	}
	var gone []int
	for _, i := range places {
		row, ok := renewed[messages[i].ID]
		if !ok {
			gone = append(gone, i)
			continue
		}
		renewals[i].Until = row.LeasedUntil.UTC()
		if PauseMode(row.PauseMode) == PauseCancel {
			renewals[i].Err = ErrPaused
		}
	}
	b.classifyGone(ctx, messages, gone, renewals)
	return nil
}

// classifyGone tells a cancelled message from a lost lease. That a lease is gone is certain already, so an error of this second query is
// no reason to keep a handler running: it leaves the weaker of the two words.
func (b *Box) classifyGone(ctx context.Context, messages []Message, gone []int, renewals []Renewal) {
	if len(gone) == 0 {
		return
	}
	fates, err := b.findFates(ctx, scopeOf(messages, gone), idsAt(messages, gone))
	for _, i := range gone {
		var fate db.FindFatesRow
		if err == nil {
			fate = fates[messages[i].ID]
		}
		if State(fate.State) == StateCancelled {
			renewals[i].Err = ErrCancelled
			continue
		}
		renewals[i].Err = ErrLeaseLost
		if State(fate.State) != StateDelivered || fate.Epoch != messages[i].Epoch { // else the holder's own settle overtook the renewal
			b.observer.LeaseLost(ctx, messages[i])
		}
	}
}

// heldArrays are the ids and tokens at some places, as the statements take them.
func heldArrays(messages []Message, places []int) (ids []int64, tokens []byte) {
	for _, i := range places {
		ids = append(ids, messages[i].ID)
		tokens = append(tokens, messages[i].token[:]...)
	}
	return ids, tokens
}

func idsAt(messages []Message, places []int) []int64 {
	ids := make([]int64, len(places))
	for n, i := range places {
		ids[n] = messages[i].ID
	}
	return ids
}

// scopeOf is the scope of exactly the tenants of some messages.
func scopeOf(messages []Message, places []int) Scope {
	tenants := make([]string, len(places))
	for n, i := range places {
		tenants[n] = messages[i].Tenant
	}
	return Tenants(tenants...)
}

// findFates says what stands for the given ids, rising and distinct.
func (b *Box) findFates(ctx context.Context, scope Scope, ids []int64) (map[int64]db.FindFatesRow, error) {
	rows, err := b.store.FindFates(ctx, db.FindFatesParams{Ids: ids, AllTenants: scope.all, Scope: scope.Names()})
	if err != nil {
		return nil, err
	}
	fates := make(map[int64]db.FindFatesRow, len(rows))
	for _, row := range rows {
		fates[row.ID] = row
	}
	return fates, nil
}
