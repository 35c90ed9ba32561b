package sse_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/events/sse"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A rig is a log on a store, with a feed that runs.
type rig struct {
	*testing.T
	store db.Store
	log   *events.Log
	feed  *events.Feed
}

func newRig(t *testing.T, store db.Store) *rig {
	t.Helper()
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := events.New(box, events.Config{MaxPayload: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, store: store, log: l}
	var stop func()
	r.feed, stop = r.run()
	t.Cleanup(stop)
	return r
}

// run runs a feed of its own.
func (r *rig) run() (feed *events.Feed, stop func()) {
	r.Helper()
	feed, err := events.NewFeed(r.log, events.FeedConfig{Poll: 10 * time.Millisecond})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	done := make(chan error, 1)
	go func() { done <- feed.Run(ctx) }()
	return feed, func() {
		cancel()
		<-done
	}
}

func onMemory(t *testing.T) (*rig, *memdb.Store) {
	t.Helper()
	store := memdb.New(memdb.Config{})
	return newRig(t, store), store
}

func (r *rig) append(given ...events.Event) {
	r.Helper()
	err := r.store.Transact(r.Context(), func(tx db.Tx) error {
		_, err := r.log.Append(r.Context(), tx, given...)
		return err
	})
	if err != nil {
		r.Error(err)
	}
}

func (r *rig) end() events.Cursor {
	r.Helper()
	end, err := r.log.End(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return end
}

// byTenant authorises each request for the tenant that its header names.
func byTenant(q *http.Request) (events.Filter, error) {
	switch tenant := q.Header.Get("Tenant"); tenant {
	case "all":
		return events.Filter{Scope: outbox.AllTenants}, nil
	case "nobody":
		return events.Filter{}, sse.ErrUnauthenticated
	case "blocked":
		return events.Filter{}, errors.New("the account's secret is revoked")
	case "none":
		return events.Filter{Scope: outbox.Tenants()}, nil
	default:
		return events.Filter{Scope: outbox.Tenants(tenant)}, nil
	}
}

func (r *rig) handler(config sse.Config) *sse.Handler {
	r.Helper()
	h, err := sse.New(r.feed, byTenant, config)
	if err != nil {
		r.Fatal(err)
	}
	return h
}

func (r *rig) serve(h http.Handler) *httptest.Server {
	server := httptest.NewServer(h)
	r.Cleanup(server.Close)
	return server
}

// get asks as a tenant, with the Last-Event-ID if it is not empty; the answer's body is closed with the test.
func (r *rig) get(url, tenant, lastID string) *http.Response {
	r.Helper()
	answer, err := get(r.Context(), url, tenant, lastID)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { answer.Body.Close() })
	return answer
}

func get(ctx context.Context, url, tenant, lastID string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Tenant", tenant)
	if lastID != "" {
		q.Header.Set("Last-Event-ID", lastID)
	}
	return http.DefaultClient.Do(q)
}

// A message is a block of the stream as the specification of server-sent events has a client read it.
type message struct {
	id, event, data string
	comment         bool
}

// A parser reads the stream's blocks.
type parser struct{ *bufio.Reader }

func parse(body io.Reader) parser { return parser{bufio.NewReader(body)} }

// next reads one block.
func (p parser) next() (m message, err error) {
	for {
		line, err := p.ReadString('\n')
		if err != nil {
			return message{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\r") {
			return message{}, fmt.Errorf("a line break in %q", line)
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			return m, nil
		case field == "":
			m.comment = true
		case field == "id":
			m.id = value
		case field == "event":
			m.event = value
		case field == "data":
			m.data += value
		default:
			return message{}, fmt.Errorf("the line %q", line)
		}
	}
}

// An envelope is what the data of an event holds.
type envelope struct {
	ID, Type, Stream, Tenant string
	Position                 int64
	RecordedAt               time.Time `json:"recorded_at"`
	Metadata                 map[string]string
	Payload                  json.RawMessage
	PayloadBase64            *[]byte `json:"payload_base64"`
}

// event reads up to the next event.
func (p parser) event() (e envelope, id string, err error) {
	for {
		m, err := p.next()
		if err != nil || m.event != "" {
			return envelope{}, m.event + m.data, err
		}
		if m.data != "" {
			return e, m.id, json.Unmarshal([]byte(m.data), &e)
		}
	}
}

// mustEvent reads up to the next event, within the test's time.
func (r *rig) mustEvent(p parser) (envelope, string) {
	r.Helper()
	e, id, err := p.event()
	if err != nil || id == "" {
		r.Fatalf("the next event: %v, %q", err, id)
	}
	return e, id
}

// dial sends a request over a connection of its own that reads nothing by itself.
func (r *rig) dial(server *httptest.Server, path string, receive int) net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	if receive > 0 {
		conn.(*net.TCPConn).SetReadBuffer(receive)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\nTenant: all\r\n\r\n", path); err != nil {
		r.Fatal(err)
	}
	return conn
}
