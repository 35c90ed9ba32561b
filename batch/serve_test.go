package batch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// serve serves the batch of the id to whom the request's header names.
func (r *rig) serve(id int64, config batch.ProgressConfig) (*batch.ProgressHandler, *httptest.Server) {
	r.Helper()
	h, err := batch.NewProgressHandler(r.Batches, func(q *http.Request) (outbox.Scope, int64, error) {
		switch who := q.Header.Get("Who"); who {
		case "nobody":
			return outbox.Scope{}, 0, batch.ErrUnauthenticated
		case "blocked":
			return outbox.Scope{}, 0, errors.New("revoked: secret")
		case "none":
			return outbox.Tenants(), id, nil
		default:
			return outbox.Tenants(who), id, nil
		}
	}, config)
	if err != nil {
		r.Fatal(err)
	}
	server := httptest.NewServer(h)
	r.Cleanup(server.Close)
	return h, server
}

func (r *rig) get(url, who, lastID string) *http.Response {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		r.Fatal(err)
	}
	q.Header.Set("Who", who)
	if lastID != "" {
		q.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { answer.Body.Close() })
	return answer
}

// A served is one event.
type served struct {
	id string
	batch.Progress
}

// next reads the next event; false at the end of the stream.
func (r *rig) next(in *bufio.Scanner) (e served, ok bool) {
	r.Helper()
	for in.Scan() {
		field, value, _ := strings.Cut(in.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.Progress); err != nil {
				r.Fatal(err)
			}
			ok = true
		case "":
			if ok {
				return e, true
			}
		}
	}
	return e, false
}

// Shows: S4.17
func TestProgressHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}))
	id := r.mustCreate(spec(), text(5), batch.Receipt{Rows: 5})
	_, server := r.serve(id, batch.ProgressConfig{Every: 100 * time.Millisecond, Heartbeat: 100 * time.Millisecond})
	answer := r.get(server.URL, "acme", "")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := answer.Header.Get(name); got != want || answer.StatusCode != http.StatusOK {
			t.Errorf("%d, %s: %q", answer.StatusCode, name, got)
		}
	}
	stream := bufio.NewScanner(answer.Body)
	if e, _ := r.next(stream); e.id != "" || e.ID != id || e.Open != 5 || e.Key != "may" || !e.Sealed() || e.Completed() {
		t.Errorf("first %+v", e)
	}
	r.perform(2)
	e, _ := r.next(stream)
	if !e.Completed() { // what was told between
		e, _ = r.next(stream)
	}
	if e.id != "completed-1" || e.Delivered != 4 || e.Dead != 1 || !e.Completed() {
		t.Errorf("last %+v", e)
	}
	if e, more := r.next(stream); more {
		t.Errorf("and %+v", e)
	}
	if answer := r.get(server.URL, "acme", "completed-1"); answer.StatusCode != http.StatusNoContent {
		t.Errorf("again: %d", answer.StatusCode)
	}
	if e, _ := r.next(bufio.NewScanner(r.get(server.URL, "acme", "").Body)); e.id != "completed-1" {
		t.Errorf("another's %+v", e)
	}
	r.rerun(id, 1)
	stream = bufio.NewScanner(r.get(server.URL, "acme", "completed-1").Body)
	if e, _ := r.next(stream); e.Run != 2 || e.Open != 1 || e.Completed() {
		t.Errorf("after a rerun %+v", e)
	}
	r.perform()
	for more := true; more && e.id != "completed-2"; {
		e, more = r.next(stream)
	}
	if e.id != "completed-2" || e.Delivered != 5 {
		t.Errorf("last %+v", e)
	}
}

// What is refused is refused before the first byte of a stream, with what to do and nothing of the authoriser's words.
func TestProgressAnswers(t *testing.T) {
	t.Parallel()
	_, err := batch.NewProgressHandler(nil, nil, batch.ProgressConfig{Every: 1, Heartbeat: -1, WriteTimeout: -1, Lifetime: -1})
	refused(t, "config", err, "batches", "authorise", "Every", "Heartbeat", "WriteTimeout", "Lifetime")
	store := memdb.New(memdb.Config{})
	r := newRig(t, store)
	id := r.mustCreate(spec(), text(5), batch.Receipt{Rows: 5})
	h, server := r.serve(id, batch.ProgressConfig{Challenge: `Bearer realm="shop"`})
	for who, want := range map[string]struct {
		status int
		code   string
	}{
		"nobody": {401, "unauthenticated"}, "blocked": {403, "forbidden"}, "none": {403, "forbidden"}, "other": {404, "not_found"},
	} {
		answer := r.get(server.URL, who, "")
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != want.status || !strings.Contains(string(body), `"`+want.code+`"`) || strings.Contains(string(body), "secret") {
			t.Errorf("%s: %d, %s, %v", who, answer.StatusCode, body, err)
		}
		if who == "nobody" && answer.Header.Get("WWW-Authenticate") != `Bearer realm="shop"` {
			t.Errorf("%v", answer.Header)
		}
	}
	if answer, err := http.Post(server.URL, "text/plain", nil); err != nil || answer.StatusCode != 405 || answer.Header.Get("Allow") != "GET" {
		t.Errorf("%v, %v", answer, err)
	}
	stream := bufio.NewScanner(r.get(server.URL, "acme", "").Body)
	if _, ok := r.next(stream); !ok {
		t.Fatal("nothing came")
	}
	h.Close()
	if e, more := r.next(stream); more {
		t.Errorf("after Close: %+v", e)
	}
	if answer := r.get(server.URL, "acme", ""); answer.StatusCode != 503 {
		t.Errorf("after Close: %d", answer.StatusCode)
	}
	_, down := r.serve(id, batch.ProgressConfig{})
	store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		if _, ok := call.Params.(db.CountBatchParams); ok {
			return errors.New("down")
		}
		return nil
	}})
	if answer := r.get(down.URL, "acme", ""); answer.StatusCode != 503 || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("down: %d, %v", answer.StatusCode, answer.Header)
	}
}
