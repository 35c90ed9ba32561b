package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// Attempts says what a replay does to the count of attempts.
type Attempts int

const (
	// PreserveAttempts keeps the count; one more lease is possible in any case.
	PreserveAttempts Attempts = iota + 1
	// ResetAttempts starts at zero, so that all attempts of the policy are possible again.
	ResetAttempts
)

func (p *problems) attempts(attempts Attempts) {
	if attempts != PreserveAttempts && attempts != ResetAttempts {
		p.add("Attempts", "is neither PreserveAttempts nor ResetAttempts")
	}
}

// Replay brings dead messages back: due at once, their age starting anew, Replays one higher; payload, key and creation stay as they
// were, and an order key that they blocked is free. One whose last lease nobody spoke for (CauseExhausted, or CauseAge once it was leased) is
// Unsure. It performs nothing itself. At most 1,000 ids; an answer each, in order: Done, or
// NotDead for what is in another state, not in the scope (then State is empty), or was replayed by another operator first. After an error
// call again: what was done answers NotDead then.
func (b *Box) Replay(ctx context.Context, scope Scope, ids []int64, attempts Attempts, by By) ([]Acted, error) {
	var found problems
	if found.attempts(attempts); found.err() != nil {
		return nil, failed("replay", found.err())
	}
	return b.operate(ctx, scope, ids, by, operation{
		verb: "replay", done: StatePending, missed: NotDead, unknown: NotDead,
		run: func(ids []int64, by By) ([]int64, error) {
			return b.store.ReplayDead(ctx, db.ReplayDeadParams{
				Ids: ids, AllTenants: scope.all, Scope: scope.Names(), Reset: attempts == ResetAttempts, Actor: by.Actor, Reason: by.Reason,
			})
		},
	})
}

// A BulkReplay says which dead messages to bring back.
type BulkReplay struct {
	// Filter narrows the choice. An empty one is refused unless All is set.
	Filter Filter
	All    bool
	// Attempts must be given.
	Attempts Attempts
	// Limit bounds one call. More than 1,000 is 1,000; zero or less does nothing and sends no query.
	Limit int
	// From goes on where an earlier call ended.
	From Cursor
	// DryRun changes nothing and counts what a real run would bring back.
	DryRun bool
}

// A BulkReplayed is what one ReplayMatching did.
type BulkReplayed struct {
	// Matched counts the dead messages that fit, Replayed those brought back: fewer when another operator was first, none in a dry run.
	Matched, Replayed int
	// Next goes on from here, while More says that there may be further ones.
	Next Cursor
	More bool
}

// ReplayMatching replays the dead messages that fit a filter, newest first, as Replay does. It may find fewer than Limit and still say
// More, since it bounds what it looks at. After an error call again with the same From.
func (b *Box) ReplayMatching(ctx context.Context, scope Scope, bulk BulkReplay, by By) (BulkReplayed, error) {
	var found problems
	found.attempts(bulk.Attempts)
	if bulk.Filter == (Filter{}) && !bulk.All {
		found.add("Filter", "is empty; set All to mean every dead message in the scope")
	}
	found.by(by)
	if err := found.err(); err != nil {
		return BulkReplayed{}, failed("replay", err)
	}
	page, err := b.List(ctx, scope, ListQuery{State: StateDead, Filter: bulk.Filter, Limit: bulk.Limit, From: bulk.From})
	if err != nil {
		return BulkReplayed{}, err
	}
	replayed := BulkReplayed{Matched: len(page.Messages), Next: page.Next, More: page.More}
	if bulk.DryRun {
		return replayed, nil
	}
	ids := make([]int64, len(page.Messages))
	for i, m := range page.Messages {
		ids[i] = m.ID
	}
	answers, err := b.Replay(ctx, scope, ids, bulk.Attempts, by)
	if err != nil {
		return BulkReplayed{}, err
	}
	for _, answer := range answers {
		if answer.Status == Done {
			replayed.Replayed++
		}
	}
	return replayed, nil
}
