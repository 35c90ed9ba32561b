package batch

import (
	"context"
	"errors"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// errAllLeased: the open rows that are left were leased whenever Cancel came to them.
var errAllLeased = errors.New("rows were leased at each try; call again")

// cancelPasses bounds how often Cancel goes through the rows that are open still.
const cancelPasses = 5

// Cancel seals a batch and cancels its open rows, leased ones too (outbox.Box.Cancel, which keeps who did it and why), and gives how many. Rows that have
// an end keep it; the batch completes, and its OnComplete is recorded. After an error call again: what was cancelled is. ErrNotFound when there is no such batch in the scope.
func (b *Batches) Cancel(ctx context.Context, scope outbox.Scope, id int64, by outbox.By) (cancelled int, err error) {
	if err := b.checkBy(ctx, scope, by); err != nil {
		return 0, failed("cancel", err)
	}
	if _, err := b.count(ctx, scope, id, false); err != nil {
		return 0, failed("cancel", err)
	}
	if _, err := b.store.SealBatch(ctx, db.SealBatchParams{ID: id, AllTenants: scope.All(), Scope: scope.Names()}); err != nil {
		return 0, failed("cancel", err)
	}
	for range cancelPasses {
		passed := 0
		done, err := b.each(ctx, scope, id, FateOpen, func(ids []int64) ([]outbox.Acted, error) {
			passed += len(ids)
			return b.box.Cancel(ctx, scope, ids, by)
		})
		if cancelled += done; err != nil || passed == done {
			return cancelled, failed("cancel", err)
		}
	}
	return cancelled, failed("cancel", errAllLeased)
}

// Rerun brings the dead rows of a batch back, all attempts before them again (outbox.Box.Replay, which keeps who did it and why), and gives how many. It touches no
// other row, and the counts go on to include those. A batch that was completed is open again, in its next run, and completes anew. After an error
// call again. ErrNotFound when there is no such batch in the scope.
func (b *Batches) Rerun(ctx context.Context, scope outbox.Scope, id int64, by outbox.By) (replayed int, err error) {
	if err := b.checkBy(ctx, scope, by); err != nil {
		return 0, failed("rerun", err)
	}
	if _, err := b.count(ctx, scope, id, false); err != nil {
		return 0, failed("rerun", err)
	}
	replayed, err = b.each(ctx, scope, id, FateDead, func(ids []int64) ([]outbox.Acted, error) {
		return b.box.Replay(ctx, scope, ids, outbox.ResetAttempts, by)
	})
	return replayed, failed("rerun", err)
}

// checkBy has an operator's words checked before the first statement, by the call that would refuse them later.
func (b *Batches) checkBy(ctx context.Context, scope outbox.Scope, by outbox.By) error {
	var found refusal.Problems
	found.Scope(scope)
	if err := found.Refused(ctx); err != nil {
		return err
	}
	_, err := b.box.Cancel(ctx, scope, nil, by) // of nothing, which sends nothing
	return err
}

// each has something done to the rows of one fate, each once, by rising number, and counts to how many it was.
func (b *Batches) each(ctx context.Context, scope outbox.Scope, id int64, fate Fate, act func(ids []int64) ([]outbox.Acted, error)) (done int, err error) {
	for query := (RowsQuery{Fate: fate, Limit: longestPage}); ; {
		rows, err := b.ListRows(ctx, scope, id, query)
		if err != nil || len(rows) == 0 {
			return done, err
		}
		ids := make([]int64, len(rows))
		for i, row := range rows {
			ids[i] = row.MessageID
		}
		acted, err := act(ids)
		if err != nil {
			return done, err
		}
		for _, a := range acted {
			if a.Status == outbox.Done {
				done++
			}
		}
		query.After = rows[len(rows)-1].Number
	}
}
