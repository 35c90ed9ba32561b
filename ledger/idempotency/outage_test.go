package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/ledger/idempotency"
)

// A failure lets one call of an operation fail, after it was done or instead of it.
func failure(operation string, done bool) memdb.Hook {
	failed := false
	fails := func(call memdb.Call) error {
		if call.Operation != operation || failed {
			return nil
		}
		failed = true
		return errors.New("connection lost")
	}
	if !done {
		return memdb.Hook{Before: func(_ context.Context, call memdb.Call) error { return fails(call) }}
	}
	return memdb.Hook{After: func(_ context.Context, call memdb.Call, err error) error { return errors.Join(err, fails(call)) }}
}

// A handler that was not called did nothing: its key is free, also where Untaken would leave it to somebody.
func TestClaimNotAnswered(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		store := memdb.New(memdb.Config{})
		r := newRig(t, store, ledger.Config{}, idempotency.Config{Untaken: true}, created)
		store.Hook(failure("Commit", done))
		r.want(payment("{}"), http.StatusServiceUnavailable, 0)
		r.want(payment("{}"), http.StatusCreated, 1)
	}
}

// A handler does not run again because a connection broke after it: its answer is stored in another try.
func TestCompleteNotAnswered(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"EndClaim", "Commit"} {
		for _, done := range []bool{true, false} {
			store := memdb.New(memdb.Config{})
			r := newRig(t, store, ledger.Config{}, idempotency.Config{}, func(w http.ResponseWriter, request *http.Request) {
				store.Hook(failure(operation, done))
				created(w, request)
			})
			r.want(payment("{}"), http.StatusCreated, 1)
			r.want(payment("{}"), http.StatusCreated, 1)
		}
	}
}
