package sse

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/eventstream"
)

// A client is one stream, with how far it came. Both places are used with the stream's lock held, but for place between two calls of page.
type client struct {
	*eventstream.Stream
	place events.Cursor // how far the stream was read
	told  events.Cursor // the last id that was sent
}

// page sends a page. The first begins the stream, and tells the place even if there is no event, so that a client that breaks off before one has
// a cursor too.
func (c *client) page(page events.Page) error {
	return c.Send(func(out *eventstream.Out, first bool) {
		for _, e := range page.Events {
			out.Spill()
			c.tell(out, e.Cursor())
			fmt.Fprintf(out, "data: %s\n\n", envelopeOf(e))
		}
		c.place = page.Next // without an event it is told at the next heartbeat
		if first && c.place != c.told {
			c.tell(out, c.place)
			out.WriteByte('\n')
		}
	})
}

// beside tells the place in a heartbeat, where that moved on over events that are not the client's: without that the cursor of a client that sees
// few events would expire.
func (c *client) beside(out *eventstream.Out) {
	if c.place != c.told {
		c.tell(out, c.place)
	}
}

// gone says in the stream that it cannot go on.
func (c *client) gone(p *eventstream.Problem) {
	_ = c.Send(func(out *eventstream.Out, _ bool) { // it ends anyway
		fmt.Fprintf(out, "event: fencepost.%s\ndata: %s\n\n", p.Code, p.JSON())
	})
}

func (c *client) tell(out *eventstream.Out, place events.Cursor) {
	fmt.Fprintf(out, "id: %s\n", place)
	c.place, c.told = place, place
}

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
