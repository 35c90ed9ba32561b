package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// releaseExamine bounds what one statement of ReleaseWorker looks at.
const releaseExamine = 10_000

// ReleaseWorker takes the leases of every worker of a name away and counts them: their messages are due again at once, unsure, with the
// attempts spent, and a later settle or renewal of such a worker finds its lease lost. For workers known to be gone, so that nobody waits
// for their leases to end. It looks at every open message, 10,000 a statement; after an error call again.
func (b *Box) ReleaseWorker(ctx context.Context, scope Scope, worker string, by By) (int, error) {
	var found problems
	scope.check(&found)
	found.name("Worker", worker, maxName)
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return 0, failed("release worker", err)
	}
	count := 0
	params := db.ReleaseWorkerParams{
		Examine: releaseExamine, Worker: worker, AllTenants: scope.all, Scope: scope.Names(), Actor: by.Actor, Reason: by.Reason,
	}
	for {
		rows, err := b.store.ReleaseWorker(ctx, params)
		if err != nil {
			return count, failed("release worker", err)
		}
		if len(rows) == 0 {
			return count, nil
		}
		for _, row := range rows {
			if row.Released {
				count++
			} else {
				params.AfterID = row.ID
			}
		}
	}
}
