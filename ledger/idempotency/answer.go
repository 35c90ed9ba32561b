package idempotency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A recorder keeps the answer of a handler until it is stored, or until it is larger than limit: then it stores that, and passes the rest on as it comes.
type recorder struct {
	client http.ResponseWriter
	limit  int
	store  func() error // is called once, before anything is sent

	header  http.Header
	status  int         // 0 until the handler says
	sent    http.Header // as it was then
	body    bytes.Buffer
	ended   bool  // the handler has returned
	passing bool  // it was stored and what there was of it sent
	err     error // why it was not
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 || status == http.StatusSwitchingProtocols { // as net/http does, but before the answer is stored
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if r.status == 0 && status >= 200 {
		r.status, r.sent = status, r.header.Clone()
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if !r.passing && r.err == nil && r.body.Len()+len(p) <= r.limit {
		return r.body.Write(p)
	}
	if err := r.pass(); err != nil {
		return 0, err
	}
	_, _ = r.client.Write(p) // the client may have gone
	return len(p), nil
}

// pass stores the answer and gives the client what was recorded of it, unless it was tried before.
func (r *recorder) pass() error {
	if !r.passing && r.err == nil {
		if r.err = r.store(); r.err == nil {
			r.passing = true
			clear(r.client.Header())
			maps.Copy(r.client.Header(), r.sent)
			r.client.WriteHeader(r.status)
			_, _ = r.client.Write(r.body.Bytes())
		}
	}
	for name, values := range r.header {
		if _, sent := r.sent[name]; !sent && r.passing && r.ended { // trailers
			r.client.Header()[name] = values
		}
	}
	return r.err
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
	Header  http.Header `json:"header,omitempty"`  // in Latin-1: see toLatin1
	Omitted bool        `json:"omitted,omitempty"` // the body was too large
	body    []byte
}

// encode gives what is kept of a recorded answer, in at most limit bytes.
func (r *recorder) encode(names []string, limit int) []byte {
	a := answer{Status: r.status, Header: http.Header{}, body: r.body.Bytes()}
	for _, name := range names {
		for _, value := range r.sent[name] {
			a.Header[name] = append(a.Header[name], toLatin1(value))
		}
	}
	text := a.encode()
	if !r.ended || len(text) > limit {
		a.Omitted, a.body = true, nil
		maps.DeleteFunc(a.Header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Content-") }) // they describe it
		text = a.encode()
	}
	if len(text) > limit {
		a.Header = nil
		text = a.encode()
	}
	return text
}

func (a answer) encode() []byte {
	line, _ := json.Marshal(a) // it cannot fail
	return append(append(line, '\n'), a.body...)
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
	for name, values := range a.Header {
		w.Header().Del(name)
		for _, value := range values {
			w.Header().Add(name, fromLatin1(value))
		}
	}
	value := "true"
	if a.Omitted {
		value = "true; body=omitted"
	}
	w.Header().Set(Replayed, value)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.body) // the client may have gone
}

// toLatin1 makes a character of each byte: a header may have any, and JSON only UTF-8.
func toLatin1(value string) string {
	var text strings.Builder
	for _, b := range []byte(value) {
		text.WriteRune(rune(b))
	}
	return text.String()
}

func fromLatin1(text string) string {
	value := make([]byte, 0, len(text))
	for _, r := range text {
		value = append(value, byte(r))
	}
	return string(value)
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
