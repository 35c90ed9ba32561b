package sqlitedb_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
)

// A caller whose context ends returns at once, also while another is the first to wait for the connection that writes.
func TestContextEndsWhileAnotherWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	openStore(t, path)
	store, err := sqlitedb.Open(path, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tx, err := store.DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	register := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := store.RegisterWorker(ctx, db.RegisterWorkerParams{Name: "w"})
			done <- err
		}()
		return done
	}
	first := register(t.Context())
	for store.DB().Stats().WaitCount == 0 {
		runtime.Gosched()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	select {
	case err := <-register(ended):
		if !errors.Is(err, context.Canceled) {
			t.Errorf("whose context had ended: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a caller waits although its context has ended")
	}
	if err := errors.Join(tx.Rollback(), <-first); err != nil {
		t.Errorf("who waited: %v", err)
	}
}
