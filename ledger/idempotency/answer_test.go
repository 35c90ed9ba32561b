package idempotency_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/ledger/idempotency"
)

// An answer too large to be stored was given; what is replayed says that its body is not there.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	for name, longHeader := range map[string]int{"body": 1, "header": 2000} {
		r := newRig(t, memdb.New(memdb.Config{}), ledger.Config{MaxResult: 1 << 10}, idempotency.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", strings.Repeat("l", longHeader))
			_, _ = w.Write(make([]byte, 1<<10))
		})
		if w := r.want(payment("{}"), 200, 1); w.Body.Len() != 1<<10 {
			t.Errorf("%s: %d bytes", name, w.Body.Len())
		}
		w := r.want(payment("{}"), 200, 1)
		if w.Body.Len() != 0 || w.Header().Get(idempotency.Replayed) != "true; body=omitted" || (w.Header().Get("Location") == "l") != (longHeader == 1) {
			t.Errorf("%s: %v, %d bytes", name, w.Header(), w.Body.Len())
		}
	}
}

// client sends a request to a real server, and reads the whole answer.
func (r *rig) client(server *httptest.Server, request *http.Request) (*http.Response, string) {
	r.Helper()
	out, err := http.NewRequestWithContext(r.Context(), request.Method, server.URL+request.RequestURI, request.Body)
	if err != nil {
		r.Fatal(err)
	}
	out.Header = request.Header
	response, err := server.Client().Do(out)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.Errorf("the answer cannot be read: %v", err)
	}
	return response, string(body)
}

// Headers come back byte for byte, and those that describe a body go with it.
func TestHeaders(t *testing.T) {
	t.Parallel()
	const place = "/caf\xe9/\u00fc<&>"
	config := idempotency.Config{Headers: []string{"content-encoding", "Content-Length", "Location", "X-Two"}}
	r := newRig(t, memdb.New(memdb.Config{}), ledger.Config{MaxResult: 1 << 10}, config, func(w http.ResponseWriter, request *http.Request) {
		size := 10
		if request.Header.Get("Large") != "" {
			size = 4 << 10
		}
		w.Header()["Location"], w.Header()["X-Two"] = []string{place}, []string{"a\xff", "b"}
		var zipped bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&zipped, gzip.NoCompression)
		_, _ = zip.Write(make([]byte, size))
		_ = zip.Close()
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(zipped.Len()))
		_, _ = w.Write(zipped.Bytes())
	})
	server := httptest.NewServer(r.serve)
	defer server.Close()
	for _, row := range []struct {
		change   change
		encoding string
		body     string
	}{
		{func(*http.Request) {}, "gzip", string(make([]byte, 10))},
		{func(r *http.Request) { with("Large", "1")(r); with(idempotency.Header, "k2")(r) }, "", ""},
	} {
		for _, replayed := range []bool{false, true} {
			request := payment("{}", row.change, with("Accept-Encoding", "gzip"))
			response, body := r.client(server, request)
			h := response.Header
			if h.Get("Location") != place || strings.Join(h["X-Two"], " ") != "a\xff b" || (h.Get(idempotency.Replayed) != "") != replayed {
				t.Errorf("%q", h)
			}
			if !replayed {
				continue
			}
			if row.body != "" {
				zip, err := gzip.NewReader(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				plain, _ := io.ReadAll(zip)
				body = string(plain)
			}
			if h.Get("Content-Encoding") != row.encoding || body != row.body {
				t.Errorf("%q %q", h, body)
			}
		}
	}
}

// No more of an answer is kept in memory than the ledger would take: what it said is stored without its body, and the rest is passed on as it comes.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		panics bool
		stands ledger.State
		calls  int64
	}{
		"final": {http.StatusCreated, false, ledger.StateCompleted, 1}, "final, then panics": {http.StatusCreated, true, ledger.StateCompleted, 1},
		"unknown": {http.StatusInternalServerError, false, ledger.StateFailed, 2}, "unknown, then panics": {http.StatusInternalServerError, true, ledger.StateFailed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *rig
			client := httptest.NewRecorder()
			r = newRig(t, memdb.New(memdb.Config{}), ledger.Config{MaxResult: 1 << 10}, idempotency.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/payments/1")
				w.WriteHeader(row.status)
				for range 100 {
					if n, err := w.Write(make([]byte, 1000)); n != 1000 || err != nil {
						t.Errorf("%d, %v", n, err)
					}
				}
				if r.calls.Load() > 1 {
					return
				}
				if client.Body.Len() != 100_000 || client.Code != row.status || client.Header().Get("Location") != "/payments/1" {
					t.Errorf("passed on: %d, %v, %d bytes", client.Code, client.Header(), client.Body.Len())
				}
				if row.status == http.StatusCreated {
					r.stands(ledger.StateCompleted) // before it was sent
				} else {
					r.stands(ledger.StateHeld) // nobody else works while this handler does
				}
				if row.panics {
					panic("mine")
				}
			})
			func() {
				defer func() { _ = recover() }()
				r.serve.ServeHTTP(client, payment("{}"))
			}()
			r.stands(row.stands)
			w := r.want(payment("{}"), row.status, row.calls)
			if omitted := w.Header().Get(idempotency.Replayed) == "true; body=omitted"; omitted != (row.calls == 1) {
				t.Errorf("%v", w.Header())
			}
		})
	}
}

// Nothing of a large answer is sent either before it is stored.
func TestPassedOnNotStored(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	var errs []error
	r := newRig(t, store, ledger.Config{MaxResult: 1 << 10}, idempotency.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation == "EndClaim" {
				return errors.New("no connection")
			}
			return nil
		}})
		for range 3 {
			_, err := w.Write([]byte(strings.Repeat("made ", 200)))
			errs = append(errs, err)
		}
	})
	if w := r.want(payment("{}"), http.StatusServiceUnavailable, 1); strings.Contains(w.Body.String(), "made") {
		t.Errorf("%s", w.Body)
	}
	if errs[0] != nil || errs[1] == nil || errs[2] == nil {
		t.Errorf("%v", errs)
	}
	store.Hook(memdb.Hook{})
	r.stands(ledger.StateHeld)
}

// What a handler can do with its answer beside writing it.
func TestAnswerWriter(t *testing.T) {
	t.Parallel()
	r := inMemory(t, idempotency.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Sum")
		w.WriteHeader(http.StatusEarlyHints)
		control := http.NewResponseController(w)
		if _, _, err := control.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
		if err := control.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("flush: %v", err)
		}
		_, _ = io.WriteString(w, "paid")
		w.Header().Set("Sum", "1")
		w.Header().Set(http.TrailerPrefix+"Late", "2")
	})
	server := httptest.NewServer(r.serve)
	defer server.Close()
	response, body := r.client(server, payment("{}"))
	if response.StatusCode != http.StatusOK || body != "paid" || response.Trailer.Get("Sum") != "1" || response.Trailer.Get("Late") != "2" {
		t.Errorf("%d %q %v", response.StatusCode, body, response.Trailer)
	}
	if response, body = r.client(server, payment("{}")); response.StatusCode != http.StatusOK || body != "paid" || len(response.Trailer) != 0 {
		t.Errorf("replayed: %d %q %v", response.StatusCode, body, response.Trailer)
	}
}
