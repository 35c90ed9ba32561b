package batch_test

import (
	"testing"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A dump that is restored has its batches as they were, and completes them.
func TestBatchesRestored(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	r := openPgxAt(t, dsn)
	id := r.mustCreate(spec(), text(2)+"x\n", batch.Receipt{Rows: 3, Rejected: 1})
	r = openPgxAt(t, pgtest.Restored(t, dsn))
	r.stands(id, "run 1: 3 = 2 open + 0 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed")
	r.perform()
	r.stands(id, "run 1: 3 = 0 open + 2 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
	if ends := r.ends(); len(ends) != 1 {
		t.Errorf("at the end: %q", ends)
	}
}
