package idempotency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// A recorder keeps the answer of a handler until it is stored.
type recorder struct {
	header http.Header
	status int         // 0 until the handler says
	sent   http.Header // as it was then
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 { // as net/http does, but before the answer is stored
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if r.status == 0 && status >= 200 {
		r.status, r.sent = status, r.header.Clone()
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// send gives the client what was recorded.
func (r *recorder) send(w http.ResponseWriter) {
	clear(w.Header())
	maps.Copy(w.Header(), r.sent)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // the client may have gone
}

// final says whether a status answers the request for good.
func final(status int) bool { return status < 500 && !undone(status) }

// undone says whether a status tells that the request was turned away before it was looked at.
func undone(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

// An answer is what the ledger keeps: one line of JSON, and the body behind it.
type answer struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	Omitted bool        `json:"omitted,omitempty"` // the body was too large
	body    []byte
}

// encode gives what is kept of a recorded answer, in at most limit bytes.
func (r *recorder) encode(names []string, limit int) ([]byte, error) {
	a := answer{Status: r.status, Header: http.Header{}, body: r.body.Bytes()}
	for _, name := range names {
		if values := r.sent[name]; len(values) > 0 {
			a.Header[name] = values
		}
	}
	text, err := a.encode()
	if len(text) > limit {
		a.Omitted, a.body = true, nil
		text, err = a.encode()
	}
	if len(text) > limit {
		a.Header = nil
		text, err = a.encode()
	}
	return text, err
}

func (a answer) encode() ([]byte, error) {
	line, err := json.Marshal(a)
	return append(append(line, '\n'), a.body...), err
}

func decode(text []byte) (a answer, err error) {
	line, body, ok := bytes.Cut(text, []byte("\n"))
	if !ok {
		return a, errors.New("the stored result is no answer of this package")
	}
	err = json.Unmarshal(line, &a)
	if err == nil && (a.Status < 200 || a.Status > 999) {
		err = fmt.Errorf("the stored answer has the status %d", a.Status)
	}
	a.body = body
	return a, err
}

func (a answer) replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.Header)
	value := "true"
	if a.Omitted {
		value = "true; body=omitted"
	}
	w.Header().Set(Replayed, value)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.body) // the client may have gone
}

// A refused is an answer of the middleware's own (RFC 9457).
type refused struct {
	status int
	title  string
	after  time.Duration // 0: trying again does not help
}

func (p refused) write(w http.ResponseWriter) {
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((p.after+time.Second-1)/time.Second)))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": p.title, "status": p.status})
}
