package sse_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/events/sse"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := sse.New(nil, nil, sse.Config{Heartbeat: -1, WriteTimeout: time.Microsecond, Lifetime: 1000 * 24 * time.Hour})
	if !errors.Is(err, outbox.ErrInvalid) {
		t.Fatal(err)
	}
	for _, field := range []string{"feed", "authorise", "Heartbeat", "WriteTimeout", "Lifetime"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	server := r.serve(r.handler(sse.Config{}))
	given := []events.Event{
		{ID: "1", Type: "a\nevent: forged\r\n\ndata: {}", Stream: "s\u2028\r", Payload: []byte("{\n \"n\": 12345678901234567890,\n \"s\": \"<&>\"}")},
		{ID: "2", Type: "t", Tenant: "acme", Payload: []byte("\x00\xff\n"), Metadata: map[string]string{"by\n": "\nid: 7"}},
		{ID: "3", Type: "t"},
		{ID: "4", Type: "t", Payload: []byte("\"\xff\"")},
		{ID: "5", Type: "t", Payload: []byte("null")},
	}
	r.append(given...)
	answer := r.get(server.URL+"?after=oldest", "all", "")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := answer.Header.Get(name); got != want || answer.StatusCode != http.StatusOK {
			t.Errorf("%d, %s: %q", answer.StatusCode, name, got)
		}
	}
	stream := parse(answer.Body)
	for i, want := range given {
		e, id := r.mustEvent(stream)
		if cursor, err := events.ParseCursor(id); err != nil || cursor.IsZero() {
			t.Errorf("the id %q: %v", id, err)
		}
		if e.ID != want.ID || e.Type != want.Type || e.Stream != want.Stream || e.Tenant != want.Tenant || e.Position != int64(i+1) ||
			len(e.Metadata) != len(want.Metadata) || e.Metadata["by\n"] != want.Metadata["by\n"] || time.Since(e.RecordedAt).Abs() > time.Minute {
			t.Errorf("sent %+v of %+v", e, want)
		}
		if json := want.ID == "1" || want.ID == "5"; json != (e.PayloadBase64 == nil) || !json && string(*e.PayloadBase64) != string(want.Payload) {
			t.Errorf("payload of %s: %s, %v", e.ID, e.Payload, e.PayloadBase64)
		}
		if want.ID == "1" && !sameJSON(e.Payload, want.Payload) {
			t.Errorf("payload %s", e.Payload)
		}
	}
}

func sameJSON(a, b []byte) bool {
	decode := func(text []byte) string {
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		var v map[string]any
		_ = decoder.Decode(&v)
		out, _ := json.Marshal(v)
		return string(out)
	}
	return decode(a) == decode(b)
}

// What is refused is refused before the first byte of a stream, with what to do.
// Shows: S4.19
func TestAnswers(t *testing.T) {
	t.Parallel()
	r, store := onMemory(t)
	h := r.handler(sse.Config{Challenge: `Bearer realm="shop"`})
	server := r.serve(h)
	start := r.end()
	r.append(events.Event{ID: "1", Type: "t"}, events.Event{ID: "2", Type: "t"})
	r.purge(store)
	r.append(events.Event{ID: "3", Type: "t"})
	foreign := []byte(r.end().String())
	foreign[30]++ // of another incarnation or event
	for _, c := range []struct {
		name, tenant, query, lastID string
		status                      int
		code                        string
	}{
		{"who asks", "nobody", "", "", 401, "unauthenticated"},
		{"not allowed", "blocked", "", "", 403, "forbidden"},
		{"of no tenant", "none", "", "", 403, "forbidden"},
		{"not allowed, bad cursor", "blocked", "?after=x", "", 403, "forbidden"},
		{"bad cursor", "all", "?after=x", "", 400, "cursor_invalid"},
		{"empty cursor", "all", "?after=", "", 400, "cursor_invalid"},
		{"two cursors", "all", "?after=oldest&after=oldest", "", 400, "cursor_invalid"},
		{"bad query", "all", "?after=%zz", "", 400, "cursor_invalid"},
		{"bad id", "all", "?after=oldest", "oldest", 400, "cursor_invalid"},
		{"expired", "all", "", start.String(), 410, "cursor_expired"},
		{"expired in the query", "all", "?after=" + start.String(), "", 410, "cursor_expired"},
		{"the id wins", "all", "?after=oldest", start.String(), 410, "cursor_expired"},
		{"unknown", "all", "", string(foreign), 410, "cursor_unknown"},
	} {
		answer := r.get(server.URL+c.query, c.tenant, c.lastID)
		body, err := io.ReadAll(answer.Body)
		var told struct{ Code, Message, Action string }
		if err != nil || json.Unmarshal(body, &told) != nil || answer.StatusCode != c.status || told.Code != c.code || told.Message == "" ||
			told.Action == "" || strings.Contains(string(body), "secret") || answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s %v", c.name, answer.StatusCode, body, err)
		}
		if challenge := answer.Header.Get("WWW-Authenticate"); (challenge == `Bearer realm="shop"`) != (c.status == 401) {
			t.Errorf("%s: challenged with %q", c.name, challenge)
		}
	}
	post, err := http.Post(server.URL, "text/plain", nil)
	if err != nil || post.StatusCode != http.StatusMethodNotAllowed || post.Header.Get("Allow") != "GET" {
		t.Errorf("POST: %v %v", post, err)
	}
	down := errors.New("down")
	store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error { return down }})
	if answer := r.get(server.URL, "all", ""); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("without a database: %d", answer.StatusCode)
	}
	store.Hook(memdb.Hook{})
	h.Close()
	if answer := r.get(server.URL, "all", ""); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", answer.StatusCode)
	}
	recorder := httptest.NewRecorder() // which has no deadlines
	q := httptest.NewRequest(http.MethodGet, "/", nil)
	q.Header.Set("Tenant", "all")
	r.handler(sse.Config{}).ServeHTTP(recorder, q)
	if recorder.Code != http.StatusInternalServerError {
		t.Errorf("without deadlines: %d", recorder.Code)
	}
}

// purge removes everything, as retention with force does.
func (r *rig) purge(store *memdb.Store) {
	r.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err := store.PurgeEvents(r.Context(), db.PurgeEventsParams{MaxRows: 1_000_000, Force: true}); err != nil {
			r.Fatal(err)
		}
		if len(store.Dump().Events) == 0 {
			return // the clock has moved on since the last was recorded
		}
		if time.Now().After(deadline) {
			r.Fatal("events stay")
		}
	}
}

// A client that has had no event yet has a cursor all the same, and one that sees few events gets newer ones.
func TestPlaceIsTold(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	server := r.serve(r.handler(sse.Config{Heartbeat: 100 * time.Millisecond}))
	answer := r.get(server.URL, "acme", "")
	stream := parse(answer.Body)
	first, err := stream.next()
	if err != nil || first.id != r.end().String() || first.data != "" {
		t.Fatalf("began with %+v, %v", first, err)
	}
	r.append(events.Event{ID: "other", Type: "t", Tenant: "other"})
	for moved := r.end().String(); ; {
		m, err := stream.next()
		if err != nil || !m.comment || m.data != "" {
			t.Fatalf("%+v, %v", m, err)
		}
		if m.id == moved {
			break
		}
	}
	answer.Body.Close()
	r.append(events.Event{ID: "own", Type: "t", Tenant: "acme"})
	again := parse(r.get(server.URL, "acme", first.id).Body)
	if e, _ := r.mustEvent(again); e.ID != "own" {
		t.Errorf("went on with %+v", e)
	}
}

// Neither the query nor a cursor of somebody else widens what the authoriser granted.
func TestScopeIsTheAuthorisers(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	server := r.serve(r.handler(sse.Config{}))
	r.append(events.Event{ID: "acme-1", Type: "t", Tenant: "acme"}, events.Event{ID: "other-1", Type: "t", Tenant: "other"})
	_, foreign := r.mustEvent(parse(r.get(server.URL+"?after=oldest", "other", "").Body))
	replay := parse(r.get(server.URL+"?after=oldest&tenant=other&scope=all&tenants=*", "acme", "").Body)
	if e, _ := r.mustEvent(replay); e.ID != "acme-1" {
		t.Errorf("got %+v", e)
	}
	live := parse(r.get(server.URL+"?tenant=other", "acme", foreign).Body)
	r.append(events.Event{ID: "other-2", Type: "t", Tenant: "other"}, events.Event{ID: "acme-2", Type: "t", Tenant: "acme"})
	for _, stream := range []parser{replay, live} {
		if e, _ := r.mustEvent(stream); e.ID != "acme-2" {
			t.Errorf("got %+v", e)
		}
	}
}

// Shows: S4.19
func TestExpiresWhileStreaming(t *testing.T) {
	t.Parallel()
	r, store := onMemory(t)
	server := r.serve(r.handler(sse.Config{}))
	stream := parse(r.get(server.URL, "all", "").Body)
	if _, err := stream.next(); err != nil {
		t.Fatal(err)
	}
	fails := make(chan struct{}, 1)
	store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		if call.Operation != "ReadEvents" {
			return nil
		}
		select {
		case fails <- struct{}{}:
		default:
		}
		return errors.New("down")
	}})
	<-fails // the feed's read: it falls behind for a second
	r.append(events.Event{ID: "lost", Type: "t"})
	r.purge(store)
	r.append(events.Event{ID: "kept", Type: "t"})
	store.Hook(memdb.Hook{})
	for {
		m, err := stream.next()
		if err != nil {
			t.Fatal(err)
		}
		if m.data == "" {
			continue
		}
		var told struct{ Code, Action string }
		if err := json.Unmarshal([]byte(m.data), &told); err != nil || m.event != "fencepost.cursor_expired" || told.Code != "cursor_expired" || told.Action == "" || m.id != "" {
			t.Fatalf("told %+v, %v", m, err)
		}
		break
	}
	if m, err := stream.next(); err != io.EOF {
		t.Errorf("after it: %+v, %v", m, err)
	}
}
