package idempotency_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/ledger/idempotency"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A rig is a handler behind the middleware.
type rig struct {
	*testing.T
	ledger *ledger.Ledger
	serve  http.Handler
	calls  atomic.Int64 // of the handler
}

func newRig(t *testing.T, store db.Store, claims ledger.Config, config idempotency.Config, do http.HandlerFunc) *rig {
	t.Helper()
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t}
	if r.ledger, err = ledger.New(box, claims); err != nil {
		t.Fatal(err)
	}
	config.Logger = slog.New(slog.DiscardHandler)
	middleware, err := idempotency.New(r.ledger, tenantOf, config)
	if err != nil {
		t.Fatal(err)
	}
	r.serve = middleware(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.calls.Add(1)
		do(w, request)
	}))
	return r
}

func inMemory(t *testing.T, config idempotency.Config, do http.HandlerFunc) *rig {
	t.Helper()
	return newRig(t, memdb.New(memdb.Config{}), ledger.Config{}, config, do)
}

// tenantOf trusts a header, which only a test may do.
func tenantOf(r *http.Request) (string, bool) {
	tenant := r.Header.Get("Tenant")
	return tenant, tenant != "nobody"
}

// A change makes a request another.
type change func(*http.Request)

func with(name string, values ...string) change {
	return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = values }
}

func payment(body string, changes ...change) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/payments?dry=0", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(idempotency.Header, `"k"`)
	for _, change := range changes {
		change(r)
	}
	return r
}

func (r *rig) send(request *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.serve.ServeHTTP(w, request)
	return w
}

// want sends a request and checks the status of its answer and how often the handler was called by then.
func (r *rig) want(request *http.Request, status int, calls int64) *httptest.ResponseRecorder {
	r.Helper()
	w := r.send(request)
	if w.Code != status || r.calls.Load() != calls {
		r.Errorf("%d after %d calls, want %d after %d: %s", w.Code, r.calls.Load(), status, calls, w.Body)
	}
	return w
}

func created(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/payments/1")
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Set-Cookie", "session=secret")
	w.WriteHeader(http.StatusCreated)
	w.Header().Set("Location", "/late")
	_, _ = w.Write(append([]byte("made of "), body...))
}

func onStores(t *testing.T, test func(*testing.T, db.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memdb.New(memdb.Config{}))
	})
	t.Run("pgx", func(t *testing.T) {
		t.Parallel()
		pool, err := pgxpool.New(context.WithoutCancel(t.Context()), pgtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		store, err := pgxdb.New(pool, pgxdb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, store)
	})
}

// Shows: S4.1 S4.3
func TestReplay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store db.Store) {
		r := newRig(t, store, ledger.Config{}, idempotency.Config{}, created)
		first := r.want(payment("{}"), http.StatusCreated, 1)
		if h := first.Header(); h.Get("Location") != "/payments/1" || h.Get("Set-Cookie") == "" || h.Get(idempotency.Replayed) != "" || first.Body.String() != "made of {}" {
			t.Errorf("first: %v %s", h, first.Body)
		}
		for name, same := range map[string]*http.Request{"again": payment("{}"), "unquoted": payment("{}", with(idempotency.Header, "k"))} {
			again := r.want(same, http.StatusCreated, 1)
			if h := again.Header(); h.Get("Location") != "/payments/1" || h.Get("Content-Type") != "text/plain" || h.Get("Set-Cookie") != "" ||
				h.Get(idempotency.Replayed) != "true" || again.Body.String() != "made of {}" {
				t.Errorf("%s: %v %s", name, h, again.Body)
			}
		}
		for name, other := range map[string]change{
			"method": func(r *http.Request) { r.Method = http.MethodPatch }, "path": func(r *http.Request) { r.URL.Path = "/refunds" },
			"query": func(r *http.Request) { r.URL.RawQuery = "dry=1" }, "type": with("Content-Type", "text/plain"),
			"body": func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")) },
		} {
			w := r.want(payment("{}", other), http.StatusUnprocessableEntity, 1)
			if w.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(w.Body.String(), "made of") {
				t.Errorf("another %s: %v %s", name, w.Header(), w.Body)
			}
		}
		r.want(payment("{}", with("Tenant", "other")), http.StatusCreated, 2)
		r.want(payment("{}", with(idempotency.Header, `"k2"`)), http.StatusCreated, 3)
	})
}

// Of many at once one is performed; the others are told to come again, and get its answer.
// Shows: S4.13
func TestInProgress(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store db.Store) {
		entered, leave := make(chan struct{}), make(chan struct{})
		r := newRig(t, store, ledger.Config{}, idempotency.Config{RetryAfter: 1500 * time.Millisecond}, func(w http.ResponseWriter, request *http.Request) {
			claim, ok := idempotency.ClaimOf(request.Context())
			if !ok || claim.Key != "k" || claim.Epoch != 1 || claim.Scope != idempotency.DefaultScope {
				t.Errorf("%v %v", claim, ok)
			}
			close(entered)
			<-leave
			created(w, request)
		})
		var first, others sync.WaitGroup
		first.Go(func() { r.send(payment("{}")) })
		<-entered
		for range 20 {
			others.Go(func() {
				if w := r.send(payment("{}")); w.Code != http.StatusConflict || w.Header().Get("Retry-After") != "2" {
					t.Errorf("beside: %d %v", w.Code, w.Header())
				}
			})
		}
		r.want(payment("[]"), http.StatusUnprocessableEntity, 1)
		others.Wait()
		close(leave)
		first.Wait()
		r.want(payment("{}"), http.StatusCreated, 1)
	})
}

func TestHandlersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"panic": func(http.ResponseWriter) { panic("mine") }, "abort": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"Goexit": func(http.ResponseWriter) { runtime.Goexit() }, "bad status": func(w http.ResponseWriter) { w.WriteHeader(7) },
		"upgrade": func(w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) },
	} {
		first := true
		r := inMemory(t, idempotency.Config{}, func(w http.ResponseWriter, request *http.Request) {
			if first {
				first = false
				_, _ = w.Write(nil) // has answered, and fails nevertheless
				fail(w)
			}
			created(w, request)
		})
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			r.send(payment("{}"))
		}()
		if cause := <-panicked; (cause == nil) != (name == "Goexit") {
			t.Errorf("%s: %v", name, cause)
		}
		if s, err := r.ledger.Find(t.Context(), "", idempotency.DefaultScope, "k"); err != nil || s.State != ledger.StateFailed {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		r.want(payment("{}"), http.StatusCreated, 2)
	}
}

// A handler whose client has gone works to its end; one that waits beyond its time has not answered.
func TestContexts(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	r := inMemory(t, idempotency.Config{}, func(w http.ResponseWriter, request *http.Request) {
		leave()
		if err := request.Context().Err(); err != nil {
			t.Errorf("the client has gone: %v", err)
		}
		created(w, request)
	})
	r.send(payment("{}").WithContext(gone))
	r.want(payment("{}"), http.StatusCreated, 1)
	r.want(payment("{}", with(idempotency.Header, "k2")).WithContext(gone), http.StatusServiceUnavailable, 1)

	var cause error
	r = newRig(t, memdb.New(memdb.Config{}), ledger.Config{Hold: time.Second}, idempotency.Config{}, func(w http.ResponseWriter, request *http.Request) {
		if cause == nil {
			<-request.Context().Done()
			cause = context.Cause(request.Context())
			return
		}
		created(w, request)
	})
	r.want(payment("{}"), http.StatusServiceUnavailable, 1)
	if !errors.Is(cause, ledger.ErrStale) {
		t.Errorf("the time was out: %v", cause)
	}
	r.want(payment("{}"), http.StatusCreated, 2)
}

// A key whose holder died is taken over after its time, and the handler sees that it is not the first; Untaken leaves it.
// Shows: S4.4
func TestHolderGone(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	var epoch int64
	r := newRig(t, store, ledger.Config{}, idempotency.Config{}, func(w http.ResponseWriter, request *http.Request) {
		claim, _ := idempotency.ClaimOf(request.Context())
		if epoch = claim.Epoch; epoch == 1 { // as if the process stood still here
			store.Age(time.Hour)
			if w := r2(t, store).send(payment("{}")); w.Code != http.StatusConflict || w.Header().Get("Retry-After") != "" {
				t.Errorf("untaken: %d %v", w.Code, w.Header())
			}
			if w := r1(t, store).send(payment("{}")); w.Code != http.StatusCreated {
				t.Errorf("taken over: %d", w.Code)
			}
		}
		w.WriteHeader(http.StatusAccepted)
	})
	r.want(payment("{}"), http.StatusConflict, 1) // it lost its claim
	r.want(payment("{}"), http.StatusCreated, 1)
}

// r1 is another process, r2 one that takes nothing over.
func r1(t *testing.T, store db.Store) *rig {
	return newRig(t, store, ledger.Config{}, idempotency.Config{}, func(w http.ResponseWriter, request *http.Request) {
		if claim, _ := idempotency.ClaimOf(request.Context()); claim.Epoch != 2 {
			t.Errorf("%v", claim)
		}
		created(w, request)
	})
}

func r2(t *testing.T, store db.Store) *rig {
	return newRig(t, store, ledger.Config{}, idempotency.Config{Untaken: true}, created)
}

// An error of the ledger is no permission, and none is hidden.
// Shows: S4.28
func TestFailsClosed(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	r := newRig(t, store, ledger.Config{}, idempotency.Config{}, created)
	broken := func(operation string) {
		store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation == operation {
				return errors.New("no connection")
			}
			return nil
		}})
	}
	broken("Claim")
	if w := r.want(payment("{}"), http.StatusServiceUnavailable, 0); w.Header().Get("Retry-After") != "1" {
		t.Errorf("%v", w.Header())
	}
	broken("EndClaim")
	w := r.want(payment("{}"), http.StatusServiceUnavailable, 1)
	if strings.Contains(w.Body.String(), "made of") || w.Header().Get("Location") != "" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	broken("")
	r.want(payment("{}"), http.StatusConflict, 1) // until the claim's time is out
}

func TestRefused(t *testing.T) {
	t.Parallel()
	r := inMemory(t, idempotency.Config{MaxBody: 10}, created)
	for row, bad := range map[string]struct {
		change change
		status int
	}{
		"no key":      {with(idempotency.Header), 400},
		"empty key":   {with(idempotency.Header, ""), 400},
		"empty text":  {with(idempotency.Header, `""`), 400},
		"blank text":  {with(idempotency.Header, `"  "`), 400},
		"two keys":    {with(idempotency.Header, "a", "b"), 400},
		"a list":      {with(idempotency.Header, "a, b"), 400},
		"parameters":  {with(idempotency.Header, `"a";b=1`), 400},
		"unended":     {with(idempotency.Header, `"a`), 400},
		"one quote":   {with(idempotency.Header, `"`), 400},
		"bad escape":  {with(idempotency.Header, `"a\b"`), 400},
		"escaped end": {with(idempotency.Header, `"a\"`), 400},
		"not ASCII":   {with(idempotency.Header, "ä"), 400},
		"quoted ä":    {with(idempotency.Header, `"ä"`), 400},
		"long key":    {with(idempotency.Header, strings.Repeat("k", 256)), 400},
		"nobody":      {with("Tenant", "nobody"), 403},
		"large body":  {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("01234567890")) }, 413},
		"broken body": {func(r *http.Request) { r.Body = io.NopCloser(brokenBody{}) }, 400},
	} {
		w := r.send(payment("{}", bad.change))
		if w.Code != bad.status || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", row, w.Code, w.Body)
		}
	}
	if r.calls.Load() != 0 {
		t.Errorf("the handler was called %d times", r.calls.Load())
	}
	r.want(payment("0123456789", with(idempotency.Header, `"a \"b\" \\c"`)), 201, 1)
	if _, err := r.ledger.Find(t.Context(), "", idempotency.DefaultScope, `a "b" \c`); err != nil {
		t.Error(err)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("broken") }

// What needs no key is served as if there were no middleware.
func TestPasses(t *testing.T) {
	t.Parallel()
	r := inMemory(t, idempotency.Config{Optional: true, Header: "Request-Key", Scope: func(*http.Request) string { return "api" }}, created)
	r.want(payment("{}"), 201, 1)
	r.want(payment("{}"), 201, 2)
	get := with("Request-Key", "k")
	r.want(payment("{}", get, func(r *http.Request) { r.Method = http.MethodGet }), 201, 3)
	r.want(payment("{}", get), 201, 4)
	r.want(payment("{}", get), 201, 4)
	if _, err := r.ledger.Find(t.Context(), "", "api", "k"); err != nil {
		t.Error(err)
	}
}

// A form that is parsed before the key is looked at takes the body away, and with it what the key stands for.
func TestForms(t *testing.T) {
	t.Parallel()
	form := with("Content-Type", "application/x-www-form-urlencoded")
	paid := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "paid "+r.FormValue("cents")) }
	r := inMemory(t, idempotency.Config{Scope: func(r *http.Request) string { return "of " + r.FormValue("account") }}, paid)
	if w := r.want(payment("account=ann&cents=100", form), http.StatusOK, 1); w.Body.String() != "paid 100" {
		t.Errorf("%s", w.Body)
	}
	r.want(payment("account=ann&cents=900", form), http.StatusUnprocessableEntity, 1)
	r.want(payment("account=bob&cents=900", form), http.StatusOK, 2) // another scope
	r.want(payment("account=ann&cents=100", form, func(r *http.Request) { _ = r.ParseForm() }), http.StatusInternalServerError, 2)
}

// What others wrote under a key is not passed off as an answer.
func TestForeignEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*ledger.Ledger, db.Tx, ledger.Claim) error{
		"foreign result": func(l *ledger.Ledger, tx db.Tx, c ledger.Claim) error {
			return l.Complete(t.Context(), tx, c, []byte("text"))
		},
		"bad status": func(l *ledger.Ledger, tx db.Tx, c ledger.Claim) error {
			return l.Complete(t.Context(), tx, c, []byte("{}\n"))
		},
		"rejected": func(l *ledger.Ledger, tx db.Tx, c ledger.Claim) error { return l.Reject(t.Context(), tx, c, "no") },
	} {
		var r *rig
		r = inMemory(t, idempotency.Config{}, func(_ http.ResponseWriter, request *http.Request) {
			claim, _ := idempotency.ClaimOf(request.Context())
			if err := r.ledger.InTx(t.Context(), func(tx db.Tx) error { return end(r.ledger, tx, claim) }); err != nil {
				t.Error(err)
			}
		})
		r.want(payment("{}"), http.StatusConflict, 1)
		want := http.StatusInternalServerError
		if name == "rejected" {
			want = http.StatusConflict
		}
		r.want(payment("{}"), want, 1)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	small, err := ledger.New(box, ledger.Config{MaxResult: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = idempotency.New(nil, nil, idempotency.Config{Header: "a b", MaxBody: -1, Headers: []string{""}, RetryAfter: time.Millisecond})
	_, ofSmall := idempotency.New(small, tenantOf, idempotency.Config{})
	if !errors.Is(err, outbox.ErrInvalid) || !errors.Is(ofSmall, outbox.ErrInvalid) || !strings.Contains(ofSmall.Error(), "MaxResult") {
		t.Errorf("%v; %v", err, ofSmall)
	}
	for _, field := range []string{"ledger ", "tenant ", "Header ", "Headers ", "MaxBody ", "RetryAfter "} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
