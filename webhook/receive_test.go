package webhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/webhook"
)

// The same webhook a hundred times at once, signed anew each time, is one event; the same id with another body is a conflict, even beside it.
// Shows: S4.2 S4.3
func TestHundredAtOnce(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store db.Store) {
		r := newRig(t, store, webhook.ReceiverConfig{RecordTimeout: patience}, func(_ context.Context, _ db.Tx, d *webhook.Delivery) error {
			d.Answer = webhook.Answer{Status: http.StatusAccepted, ContentType: "text/plain", Body: []byte("taken")}
			return nil
		})
		server := httptest.NewServer(r.receiver)
		defer server.Close()
		post := func(at time.Time, body string) (status int, replayed bool, answer string) {
			header, err := webhook.Sign("msg_1", at, []byte(body), r.secret)
			if err != nil {
				t.Error(err)
			}
			request, err := http.NewRequest(http.MethodPost, server.URL+"/hooks/bank", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header = header
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Error(err)
			}
			return response.StatusCode, response.Header.Get(webhook.Replayed) == "true", response.Header.Get("Content-Type") + " " + string(text)
		}
		var all sync.WaitGroup
		var first, again atomic.Int64
		for n := range 100 {
			all.Go(func() {
				status, replayed, answer := post(time.Now().Add(-time.Duration(n)*time.Second), vectorBody)
				if status != http.StatusAccepted || answer != "text/plain taken" {
					t.Errorf("%d %q", status, answer)
				}
				if replayed {
					again.Add(1)
				} else {
					first.Add(1)
				}
			})
		}
		all.Wait()
		for range 10 {
			all.Go(func() {
				if status, _, answer := post(time.Now(), vectorBody+" "); status != http.StatusConflict || strings.Contains(answer, "taken") {
					t.Errorf("another body: %d %q", status, answer)
				}
			})
		}
		all.Wait()
		if first.Load() != 1 || again.Load() != 99 || r.recorded() != 1 || r.commits.Load() != 1 {
			t.Errorf("%d first, %d again, %d events, %d commits", first.Load(), again.Load(), r.recorded(), r.commits.Load())
		}
	})
}

// Of many ids at once, each with two bodies, each has one event of one of the two.
// Shows: S4.3
func TestTwoBodiesAtOnce(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store db.Store) {
		r := newRig(t, store, webhook.ReceiverConfig{RecordTimeout: patience}, nil)
		var all sync.WaitGroup
		var conflicts, stored atomic.Int64
		for n := range 20 {
			for _, body := range []string{"a", "b"} {
				request := r.hook("/hooks/bank", fmt.Sprintf("msg_%d", n), body)
				all.Go(func() {
					w := httptest.NewRecorder()
					r.receiver.ServeHTTP(w, request)
					switch w.Code {
					case http.StatusNoContent:
						stored.Add(1)
					case http.StatusConflict:
						conflicts.Add(1)
					default:
						t.Errorf("%d: %s", w.Code, w.Body)
					}
				})
			}
		}
		all.Wait()
		if stored.Load() != 20 || conflicts.Load() != 20 || r.recorded() != 20 {
			t.Errorf("%d stored, %d conflicts, %d events", stored.Load(), conflicts.Load(), r.recorded())
		}
	})
}

// An id is one tenant's and one source's, and a webhook that comes again years later is still the same.
// Shows: S4.29
func TestIdentity(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}), webhook.ReceiverConfig{}, nil)
	for range 2 {
		w := r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusNoContent)
		if w.Body.Len() != 0 {
			t.Errorf("%s", w.Body)
		}
	}
	r.want(r.hook("/hooks/other", "msg_1", "{}"), http.StatusNoContent)
	r.want(r.hook("/hooks/bank", "msg_2", ""), http.StatusNoContent)
	if r.recorded() != 3 {
		t.Errorf("%d events", r.recorded())
	}
	standing, err := r.ledger.Find(t.Context(), "acme", "bank", "msg_1")
	if err != nil || standing.State != ledger.StateCompleted || standing.Digest != ledger.DigestOf([]byte("{}")) {
		t.Errorf("%+v, %v", standing, err)
	}
}

// Nothing is claimed before the signature is good, and a claim is no signature: a webhook that was recorded is refused like any other when
// it comes again unsigned.
// Shows: S4.2 S4.20
func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}), webhook.ReceiverConfig{MaxBody: 8, Tolerance: time.Minute}, nil)
	change := func(change func(*http.Request)) *http.Request {
		request := r.hook("/hooks/bank", "msg_1", "{}")
		change(request)
		return request
	}
	stale := func(by time.Duration) *http.Request {
		return change(func(request *http.Request) {
			header, err := webhook.Sign("msg_1", time.Now().Add(by), []byte("{}"), r.secret)
			if err != nil {
				t.Fatal(err)
			}
			request.Header = header
		})
	}
	other := change(func(request *http.Request) {
		header, err := webhook.Sign("msg_1", time.Now(), []byte("{}"), webhook.NewSecret())
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
	})
	for range 2 { // the second time it is a duplicate
		for _, row := range []struct {
			request *http.Request
			status  int
			title   string
		}{
			{change(func(request *http.Request) { request.Method = http.MethodGet }), 405, "posted"},
			{r.hook("/hooks/bank", "msg_1", "123456789"), 413, "more than 8 bytes"},
			{r.hook("/hooks/nobody", "msg_1", "{}"), 401, "unknown"},
			{change(func(request *http.Request) { request.Header.Del("webhook-id") }), 401, "Webhook-Id is missing"},
			{change(func(request *http.Request) { request.Header.Set("webhook-timestamp", "now") }), 401, "Webhook-Timestamp is malformed"},
			{change(func(request *http.Request) { request.Body = io.NopCloser(strings.NewReader("[]")) }), 401, "Webhook-Signature matches no secret"},
			{stale(-2 * time.Minute), 401, "Webhook-Timestamp is too old"},
			{stale(2 * time.Minute), 401, "Webhook-Timestamp is too new"},
			{other, 401, "Webhook-Signature matches no secret"},
			{change(func(request *http.Request) { request.Body = io.NopCloser(&unreadable{}) }), 400, "cannot be read"},
			{r.hook("/hooks/broken", "msg_1", "{}"), 503, "try again"},
			{r.hook("/hooks/unset", "msg_1", "{}"), 500, "try again"},
			{r.hook("/hooks/misnamed", "msg_1", "{}"), 500, "try again"},
		} {
			before := r.recorded()
			w := r.want(row.request, row.status)
			if !strings.Contains(w.Body.String(), row.title) || w.Header().Get("Content-Type") != "application/problem+json" || r.recorded() != before {
				t.Errorf("%d: %s", row.status, w.Body)
			}
		}
		r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusNoContent)
	}
	if log := r.logged.String(); strings.Contains(log, "hunter2") || !strings.Contains(log, "no connection for ***") || !strings.Contains(log, "Secrets") {
		t.Errorf("logged %s", log)
	}
}

type unreadable struct{}

func (*unreadable) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What a Record could not do is not there, nor is its claim, and the webhook may come again.
// Shows: S4.1
func TestRecordFails(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store db.Store) {
		var fail func(*webhook.Delivery) error
		r := newRig(t, store, webhook.ReceiverConfig{}, func(_ context.Context, _ db.Tx, d *webhook.Delivery) error { return fail(d) })
		for name, failing := range map[string]func(*webhook.Delivery) error{
			"error":     func(*webhook.Delivery) error { return errors.New("password hunter2") },
			"conflict":  func(*webhook.Delivery) error { return ledger.ErrConflict }, // of a claim of its own
			"status":    func(d *webhook.Delivery) error { d.Answer.Status = 503; return nil },
			"too large": func(d *webhook.Delivery) error { d.Answer.Body = make([]byte, 64<<10); return nil },
		} {
			fail = failing
			w := r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusInternalServerError)
			if r.recorded() != 0 || r.commits.Load() != 0 || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%s: %d events, %d commits: %s", name, r.recorded(), r.commits.Load(), w.Body)
			}
		}
		func() {
			defer func() {
				if cause := recover(); cause != "mine" {
					t.Errorf("panicked with %v", cause)
				}
			}()
			fail = func(*webhook.Delivery) error { panic("mine") }
			r.want(r.hook("/hooks/bank", "msg_1", "{}"), 0)
		}()
		fail = func(d *webhook.Delivery) error { d.Answer.Body = []byte("done"); return nil }
		for range 2 {
			if w := r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusOK); w.Body.String() != "done" {
				t.Errorf("%s", w.Body)
			}
		}
		if r.recorded() != 1 || r.commits.Load() != 1 || strings.Contains(r.logged.String(), "hunter2") {
			t.Errorf("%d events, %d commits, logged %s", r.recorded(), r.commits.Load(), r.logged)
		}
	})
}

// A client that has gone does not end the transaction. An effect wakes the sender at once.
func TestClientGone(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	r := newRig(t, memdb.New(memdb.Config{}), webhook.ReceiverConfig{}, func(ctx context.Context, _ db.Tx, _ *webhook.Delivery) error {
		leave()
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("nothing bounds the transaction")
		}
		return ctx.Err()
	})
	woken, stop := r.ledger.Box().Woken()
	defer stop()
	r.want(r.hook("/hooks/bank", "msg_1", "{}").WithContext(gone), http.StatusNoContent)
	select {
	case <-woken:
	default:
		t.Error("the sender sleeps")
	}
}

// A database that does not answer is no permission; one that asks for the whole again gets it, a bounded number of times.
// Shows: S4.28
func TestFailsClosed(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	r := newRig(t, store, webhook.ReceiverConfig{}, nil)
	breaks := func(operation string, times int, err error) {
		store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation == operation && times > 0 {
				times--
				return err
			}
			return nil
		}})
	}
	breaks("Claim", 1, errors.New("no connection"))
	r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusServiceUnavailable)
	breaks("EndClaim", 1, errors.New("no connection"))
	r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusInternalServerError)
	breaks("EndClaim", 3, db.ErrRetry)
	r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusInternalServerError)
	if r.recorded() != 0 || r.calls.Load() != 4 {
		t.Errorf("%d events after %d calls", r.recorded(), r.calls.Load())
	}
	breaks("EndClaim", 2, db.ErrRetry)
	r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusNoContent)
	if r.recorded() != 1 || r.calls.Load() != 7 || r.commits.Load() != 1 {
		t.Errorf("%d events after %d calls, %d commits", r.recorded(), r.calls.Load(), r.commits.Load())
	}
}

// Claims of others under the same scope are not the receiver's to end.
func TestForeignClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}), webhook.ReceiverConfig{}, nil)
	claim := func(key string, end func(db.Tx, ledger.Claim) error) {
		t.Helper()
		err := r.ledger.InTx(t.Context(), func(tx db.Tx) error {
			result, err := r.ledger.Claim(t.Context(), tx, ledger.Request{Scope: "bank", Key: key, Digest: ledger.DigestOf([]byte("{}"))})
			if err != nil || end == nil {
				return err
			}
			return end(tx, result.Claim)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	claim("held", nil)
	claim("rejected", func(tx db.Tx, c ledger.Claim) error { return r.ledger.Reject(t.Context(), tx, c, "no") })
	claim("odd", func(tx db.Tx, c ledger.Claim) error { return r.ledger.Complete(t.Context(), tx, c, []byte("no JSON")) })
	claim("nothing", func(tx db.Tx, c ledger.Claim) error { return r.ledger.Complete(t.Context(), tx, c, []byte("{}")) })
	claim("failed", func(tx db.Tx, c ledger.Claim) error { return r.ledger.Fail(t.Context(), tx, c, "no") })
	for id, status := range map[string]int{"held": 503, "rejected": 409, "odd": 500, "nothing": 500, "failed": 204} {
		r.want(r.hook("/hooks/bank", id, "{}"), status)
	}
	if r.recorded() != 1 {
		t.Errorf("%d events", r.recorded())
	}
}

// The driver's way into the transaction serves tables of the program's own.
func TestOwnTables(t *testing.T) {
	t.Parallel()
	store, pool := openPgx(t)
	lite := openSQLite(t)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE paid (id text, body text)"); err != nil {
		t.Fatal(err)
	}
	if _, err := lite.DB().ExecContext(t.Context(), "CREATE TABLE paid (id text, body text)"); err != nil {
		t.Fatal(err)
	}
	const insert, count = "INSERT INTO paid (id, body) VALUES ($1, $2)", "SELECT count(*) FROM paid"
	for name, row := range map[string]struct {
		store  db.Store
		record webhook.Record
		count  func(n *int) error
	}{
		"pgx": {store, pgxdb.EventHandler(func(ctx context.Context, tx pgx.Tx, d *webhook.Delivery) error {
			_, err := tx.Exec(ctx, insert, d.ID, string(d.Body))
			return err
		}), func(n *int) error { return pool.QueryRow(t.Context(), count).Scan(n) }},
		"sqlite": {lite, sqlitedb.EventHandler(func(ctx context.Context, tx *sql.Tx, d *webhook.Delivery) error {
			_, err := tx.ExecContext(ctx, insert, d.ID, string(d.Body))
			return err
		}), func(n *int) error { return lite.DB().QueryRowContext(t.Context(), count).Scan(n) }},
	} {
		r := newRig(t, row.store, webhook.ReceiverConfig{}, row.record)
		for range 3 {
			r.want(r.hook("/hooks/bank", "msg_1", "{}"), http.StatusNoContent)
		}
		var n int
		if err := row.count(&n); err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
}

func TestBadReceiver(t *testing.T) {
	t.Parallel()
	_, err := webhook.NewReceiver(nil, nil, nil, webhook.ReceiverConfig{Tolerance: -1, MaxBody: -1, RecordTimeout: -1})
	refused(t, "all", err, "ledger", "from", "record", "Tolerance", "MaxBody", "RecordTimeout")
	_, err = webhook.From(webhook.Origin{Tenant: "*", Source: " "})
	refused(t, "origin", err, "Tenant", "Source", "Secrets")
	_, public := webhook.NewKeyPair()
	from, err := webhook.From(webhook.Origin{Source: "bank", Secrets: []webhook.Secret{public}})
	if err != nil {
		t.Fatal(err)
	}
	if origin, err := from(nil); err != nil || origin.Source != "bank" {
		t.Errorf("%+v, %v", origin, err)
	}
}
