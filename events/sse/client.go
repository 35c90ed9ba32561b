package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/events"
)

// piece is how much is written at once, under a deadline of its own.
const piece = 32 << 10

// A client is one stream. The handler's goroutine follows the feed; a timer sends heartbeats, so that an idle client costs no second goroutine.
type client struct {
	handler *Handler
	w       http.ResponseWriter
	control *http.ResponseController
	cut     context.CancelFunc // ends the following

	mu     sync.Mutex // one writes at a time
	begun  bool
	over   bool
	failed error         // of a write
	place  events.Cursor // how far the stream was read
	told   events.Cursor // the last id that was sent
	beat   *time.Timer
}

// page sends a page. The first begins the stream, and tells the place even if there is no event, so that a client that breaks off before one has
// a cursor too.
func (c *client) page(page events.Page) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.begun
	if first {
		c.begin()
	}
	if len(page.Events) == 0 && !first {
		c.place = page.Next // told at the next heartbeat
		return nil
	}
	var out bytes.Buffer
	for _, e := range page.Events {
		if out.Len() >= piece {
			c.write(&out)
		}
		c.place = e.Cursor()
		writeID(&out, c.place)
		fmt.Fprintf(&out, "data: %s\n\n", envelopeOf(e))
		c.told = c.place
	}
	c.place = page.Next
	if first && c.place != c.told {
		writeID(&out, c.place)
		out.WriteByte('\n')
		c.told = c.place
	}
	return c.flush(&out)
}

// begin sends the headers and starts the heartbeats.
func (c *client) begin() {
	c.begun = true
	_ = c.control.SetReadDeadline(time.Time{}) // http.Server.ReadTimeout is for requests, and would end the stream
	header := c.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	c.beat = time.AfterFunc(c.handler.config.Heartbeat, c.heartbeat)
}

// heartbeat sends a comment line. It tells the place too, where that moved on over events that are not the client's: without that the cursor of a
// client that sees few events would expire.
func (c *client) heartbeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	var out bytes.Buffer
	out.WriteString(":\n")
	if c.place != c.told {
		writeID(&out, c.place)
		c.told = c.place
	}
	out.WriteByte('\n')
	if c.flush(&out) != nil {
		c.cut()
		return
	}
	c.beat.Reset(c.handler.config.Heartbeat)
}

// gone says in the stream that it cannot go on.
func (c *client) gone(p *problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := bytes.NewBuffer(nil)
	fmt.Fprintf(out, "event: fencepost.%s\ndata: %s\n\n", p.Code, p.json())
	_ = c.flush(out) // it ends anyway
}

// end waits for a heartbeat under way; afterwards nothing is written any more.
func (c *client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.beat != nil {
		c.beat.Stop()
	}
}

// broken says whether a write failed.
func (c *client) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed != nil
}

func (c *client) flush(out *bytes.Buffer) error {
	if c.write(out); c.failed == nil {
		c.extend()
		c.failed = c.control.Flush()
	}
	return c.failed
}

// write empties the buffer. After one write that failed it does nothing any more.
func (c *client) write(out *bytes.Buffer) {
	for out.Len() > 0 && c.failed == nil {
		c.extend()
		_, c.failed = c.w.Write(out.Next(piece))
	}
	out.Reset()
}

func (c *client) extend() {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.handler.config.WriteTimeout)) // it could at the start
}

func writeID(out *bytes.Buffer, place events.Cursor) { fmt.Fprintf(out, "id: %s\n", place) }

// An envelope is an event as a client sees it.
type envelope struct {
	ID         string            `json:"id"`
	Type       string            `json:"type"`
	Stream     string            `json:"stream"`
	Tenant     string            `json:"tenant"`
	Position   int64             `json:"position"`
	RecordedAt time.Time         `json:"recorded_at"`
	Metadata   map[string]string `json:"metadata"`
	Payload    json.RawMessage   `json:"payload,omitempty"`
	Base64     *[]byte           `json:"payload_base64,omitempty"`
}

// envelopeOf is one line of JSON: Marshal escapes what breaks lines in texts, and takes the line breaks out of a payload.
func envelopeOf(e events.Event) []byte {
	v := envelope{
		ID: e.ID, Type: e.Type, Stream: e.Stream, Tenant: e.Tenant, Position: e.Position, RecordedAt: e.RecordedAt, Metadata: e.Metadata,
	}
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	if json.Valid(e.Payload) && utf8.Valid(e.Payload) {
		v.Payload = e.Payload
	} else {
		bytes := append([]byte{}, e.Payload...) // "" for nil, not null
		v.Base64 = &bytes
	}
	line, _ := json.Marshal(v) // of texts and valid JSON, which cannot fail
	return line
}
