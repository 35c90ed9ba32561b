package batch_test

import (
	"context"
	"testing"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

// A chunk that the database asks to be tried again is.
func TestChunkIsTriedAgain(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	r := newRig(t, store)
	refusals := 2
	store.Hook(memdb.Hook{After: func(_ context.Context, call memdb.Call, err error) error {
		if call.Operation == "AddBatchRows" && refusals > 0 {
			refusals--
			return db.ErrRetry
		}
		return err
	}})
	r.mustCreate(spec(), text(2), batch.Receipt{Rows: 2})
}
