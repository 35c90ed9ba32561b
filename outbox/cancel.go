package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// Cancel ends open messages for good, leased ones too: a running handler's context is cancelled at its next renewal with cause
// ErrCancelled, and its settle is stale. At most 1,000 ids; an answer each, in order: Done, NotOpen, or NotFound for what is not in the
// scope. A NotOpen in an open State was leased at each of ten tries: call again. After an error call again too: what was done answers NotOpen
// then, in StateCancelled.
func (b *Box) Cancel(ctx context.Context, scope Scope, ids []int64, by By) ([]Acted, error) {
	return b.operate(ctx, scope, ids, by, operation{
		verb: "cancel", done: StateCancelled, missed: NotOpen, unknown: NotFound, ends: true,
		run: func(ids []int64, by By) ([]int64, error) {
			return b.store.CancelOpen(ctx, db.CancelOpenParams{
				Ids: ids, AllTenants: scope.all, Scope: scope.Names(), Actor: by.Actor, Reason: by.Reason,
			})
		},
	})
}
