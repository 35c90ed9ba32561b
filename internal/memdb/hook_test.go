package memdb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

func TestHookInjects(t *testing.T) {
	t.Parallel()
	injected := errors.New("injected")
	store := memdb.New(memdb.Config{})
	register := func() error {
		_, err := store.RegisterWorker(t.Context(), db.RegisterWorkerParams{Name: "w"})
		return err
	}
	store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		if call.Operation != "RegisterWorker" || call.Params.(db.RegisterWorkerParams).Name != "w" {
			t.Errorf("called with %+v", call)
		}
		return injected
	}})
	if err := register(); err != injected || len(store.Dump().Workers) != 0 {
		t.Errorf("before: %v, %+v", err, store.Dump().Workers)
	}
	store.Hook(memdb.Hook{After: func(context.Context, memdb.Call, error) error { return injected }})
	if err := register(); err != injected || len(store.Dump().Workers) != 1 {
		t.Errorf("after: %v, %+v", err, store.Dump().Workers)
	}
	store.Hook(memdb.Hook{})
	if err := register(); err != nil || len(store.Dump().Workers) != 2 {
		t.Errorf("no hook: %v, %+v", err, store.Dump().Workers)
	}
}

func TestListenHearsWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memdb.New(memdb.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		heard, done := 0, make(chan error)
		listen := func() { done <- store.Listen(ctx, func() { heard++ }) }
		go listen()
		synctest.Wait()
		store.Wake(ctx)
		synctest.Wait()
		if heard != 2 {
			t.Errorf("heard %d hints, want one at the start and one of the wake", heard)
		}
		store.Disconnect()
		if err := <-done; err == nil {
			t.Error("a broken connection gave no error")
		}
		go listen()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}

func TestFailedStatementChangesNothing(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	pause := db.PauseLaneParams{Consumer: "c", Target: "t", Kind: "k", Tenant: "*", Mode: 7, Actor: "a", Reason: "r"}
	_, err := store.PauseLane(t.Context(), pause)
	var refused *memdb.CheckError
	if !errors.As(err, &refused) || refused.Constraint != "pause_mode_check" {
		t.Errorf("got %v", err)
	}
	if dump := store.Dump(); len(dump.Audits)+len(dump.Pauses) != 0 {
		t.Errorf("left %+v", dump)
	}
}
