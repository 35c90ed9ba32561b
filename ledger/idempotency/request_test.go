package idempotency_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/ledger/idempotency"
	"github.com/fencepost-go/fencepost/outbox"
)

// Two resources are two contents, also where an outer handler has taken away what tells them apart.
func TestOtherResource(t *testing.T) {
	t.Parallel()
	r := inMemory(t, idempotency.Config{}, created)
	inner := r.serve
	mux := http.NewServeMux()
	mux.Handle("/eu/", http.StripPrefix("/eu", inner))
	mux.Handle("/us/", http.StripPrefix("/us", inner))
	mux.HandleFunc("/batch", func(w http.ResponseWriter, r *http.Request) {
		part := r.Clone(r.Context())
		part.URL.Path = r.Header.Get("Part")
		inner.ServeHTTP(w, part)
	})
	r.serve = mux
	to := func(target, host string) *http.Request {
		request := payment("{}")
		request.RequestURI, request.Host = target, host
		request.URL.Path, request.URL.RawQuery, _ = strings.Cut(target, "?")
		return request
	}
	r.want(to("/eu/payments", "a.example"), http.StatusCreated, 1)
	r.want(to("/eu/payments", "A.example"), http.StatusCreated, 1)
	r.want(to("/us/payments", "a.example"), http.StatusUnprocessableEntity, 1)
	r.want(to("/eu/payments", "b.example"), http.StatusUnprocessableEntity, 1)
	part := func(path string) *http.Request {
		request := to("/batch", "a.example")
		with(idempotency.Header, "k2")(request)
		with("Part", path)(request)
		return request
	}
	r.want(part("/payments"), http.StatusCreated, 2)
	r.want(part("/payments"), http.StatusCreated, 2)
	r.want(part("/refunds"), http.StatusUnprocessableEntity, 2)
}

// A request that is under its claim already would wait for itself.
func TestTwice(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	inner := newRig(t, store, ledger.Config{}, idempotency.Config{}, created)
	outer := newRig(t, store, ledger.Config{}, idempotency.Config{}, inner.serve.ServeHTTP)
	outer.want(payment("{}"), http.StatusInternalServerError, 1)
	if inner.calls.Load() != 0 {
		t.Error("the handler was called")
	}
	other := newRig(t, store, ledger.Config{}, idempotency.Config{Scope: func(*http.Request) string { return "api" }}, inner.serve.ServeHTTP)
	other.want(payment("{}"), http.StatusCreated, 1) // a key within another scope is another key
	if inner.calls.Load() != 1 {
		t.Error("the handler was not called")
	}
}

// What the service does wrong is no fault of the client, and trying again does not help.
func TestServiceAtFault(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]change{
		"tenant": with("Tenant", " "), "long tenant": with("Tenant", strings.Repeat("t", 129)), "scope": with("Scope", "\xff"),
		"body read": func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
	} {
		r := inMemory(t, idempotency.Config{Scope: func(r *http.Request) string { return "http" + r.Header.Get("Scope") }}, created)
		if w := r.want(payment("{}", bad), http.StatusInternalServerError, 0); w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %v", name, w.Header())
		}
		r.want(payment("{}"), http.StatusCreated, 1)
	}
}

// A method that no request has would leave those that were meant unprotected.
func TestMethods(t *testing.T) {
	t.Parallel()
	r := inMemory(t, idempotency.Config{Methods: []string{}}, created)
	r.want(payment("{}", with(idempotency.Header)), http.StatusBadRequest, 0)
	for _, method := range []string{"post", "", "P T"} {
		if _, err := idempotency.New(r.ledger, tenantOf, idempotency.Config{Methods: []string{method}}); !errors.Is(err, outbox.ErrInvalid) {
			t.Errorf("%q: %v", method, err)
		}
	}
}
