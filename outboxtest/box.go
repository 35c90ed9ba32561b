package outboxtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// New gives a box over an empty store in memory. Without a Logger it logs to the test's output.
func New(t testing.TB, config outbox.Config) *outbox.Box {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	box, err := outbox.New(memdb.New(memdb.Config{}), config)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// InTx runs do in a transaction of a box from New and commits it, as the InTx of a driver does; an error or a panic of do rolls back.
func InTx(ctx context.Context, box *outbox.Box, do func(tx db.Tx) error) error {
	store, ok := box.Store().(*memdb.Store)
	if !ok {
		return db.ErrForeignTx
	}
	return memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error { return do(tx) })
}

// Enqueue stores effects in a box from New, in a transaction of their own, and gives their receipts in order. A conflict fails the test.
func Enqueue(t testing.TB, box *outbox.Box, effects ...outbox.Effect) outbox.Receipts {
	t.Helper()
	var receipts outbox.Receipts
	err := InTx(t.Context(), box, func(tx db.Tx) (err error) {
		receipts, err = box.EnqueueMany(t.Context(), tx, effects)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return receipts
}

// Age lets time pass for all that is committed in a box from New: every instant it keeps moves back. What runs meanwhile does not notice.
func Age(t testing.TB, box *outbox.Box, by time.Duration) {
	t.Helper()
	memory(t, box).Age(by)
}

func memory(t testing.TB, box *outbox.Box) *memdb.Store {
	t.Helper()
	store, ok := box.Store().(*memdb.Store)
	if !ok {
		t.Fatal("the box does not come from outboxtest.New")
	}
	return store
}
