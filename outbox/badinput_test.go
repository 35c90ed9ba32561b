package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/badinput"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	badinput.Run(t, func(*testing.T) badinput.Env {
		store := memdb.New(memdb.Config{})
		var sent atomic.Int64
		store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation != "Commit" {
				sent.Add(1)
			}
			return nil
		}})
		return badinput.Env{
			Store: store,
			Begin: func() badinput.Tx {
				tx := store.Begin()
				return badinput.Tx{Handle: tx, Commit: tx.Commit, Rollback: tx.Rollback}
			},
			Age:  store.Age,
			Sent: func() int { return int(sent.Load()) },
			Broken: map[string]func() db.Tx{
				"closed": func() db.Tx {
					tx := store.Begin()
					_ = tx.Rollback()
					return tx
				},
				"aborted": func() db.Tx {
					tx := store.Begin()
					_, _ = store.Enqueue(t.Context(), tx, db.EnqueueParams{Keys: []string{"of arrays that differ in length"}})
					return tx
				},
				"another store": func() db.Tx { return memdb.New(memdb.Config{}).Begin() },
			},
		}
	})
}
