package idempotency_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/ledger/idempotency"
)

// What an answer makes of its key: stored, freed, or, with Untaken, kept where nobody knows whether the handler acted.
func TestStatuses(t *testing.T) {
	t.Parallel()
	const final, undone, unknown = ledger.StateCompleted, ledger.StateFailed, ledger.StateHeld
	for status, want := range map[int]ledger.State{
		200: final, 204: final, 303: final, 400: final, 402: final, 404: final, 409: final, 412: final, 422: final,
		401: undone, 403: undone, 408: undone, 421: undone, 425: undone, 429: undone,
		500: unknown, 503: unknown, 504: unknown,
	} {
		for _, untaken := range []bool{false, true} {
			r := inMemory(t, idempotency.Config{Untaken: untaken}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			r.want(payment("{}"), status, 1)
			stands := want
			if want == unknown && !untaken {
				stands = undone
			}
			r.stands(stands)
			answer, calls := status, int64(1)
			switch stands {
			case undone:
				calls = 2
			case unknown:
				answer = http.StatusConflict
			}
			w := r.want(payment("{}"), answer, calls)
			if replayed := w.Header().Get(idempotency.Replayed) != ""; replayed != (stands == final) {
				t.Errorf("%d: replayed %t", status, replayed)
			}
		}
	}
}

// stands checks how the key of a payment stands.
func (r *rig) stands(want ledger.State) {
	r.Helper()
	if s, err := r.ledger.Find(r.Context(), "", idempotency.DefaultScope, "k"); err != nil || s.State != want {
		r.Errorf("the key is %s, want %s: %v", s.State, want, err)
	}
}

// With Untaken nothing that may have been done is done again by itself, whatever the handler died of.
func TestUntakenUnknown(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]http.HandlerFunc{
		"panic": func(http.ResponseWriter, *http.Request) { panic("mine") },
		"no answer in its time": func(_ http.ResponseWriter, request *http.Request) {
			<-request.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memdb.New(memdb.Config{})
			r := newRig(t, store, ledger.Config{Hold: time.Second}, idempotency.Config{Untaken: true}, end)
			func() {
				defer func() { _ = recover() }()
				r.want(payment("{}"), http.StatusServiceUnavailable, 1)
			}()
			store.Age(time.Hour)
			r.stands(ledger.StateHeld)
			if w := r.want(payment("{}"), http.StatusConflict, 1); w.Header().Get("Retry-After") != "" {
				t.Errorf("%v", w.Header())
			}
		})
	}
}
