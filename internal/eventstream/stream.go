// Package eventstream sends server-sent events: the transport that packages events/sse and batch share. It knows nothing of what is sent.
package eventstream

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
)

// piece is how much is written at once, under a deadline of its own.
const piece = 32 << 10

// Config of a stream. The packages that use it have a Config of the same fields, where they are described.
type Config struct {
	Heartbeat, WriteTimeout, Lifetime time.Duration
	Challenge                         string
}

// Fill fills in the defaults and reports what is out of bounds.
func (c *Config) Fill(found *refusal.Problems) {
	for _, d := range []struct {
		field                  string
		value                  *time.Duration
		otherwise, least, most time.Duration
	}{
		{"Heartbeat", &c.Heartbeat, 15 * time.Second, 100 * time.Millisecond, time.Hour},
		{"WriteTimeout", &c.WriteTimeout, 10 * time.Second, 10 * time.Millisecond, time.Hour},
		{"Lifetime", &c.Lifetime, time.Hour, 100 * time.Millisecond, 30 * 24 * time.Hour},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
		found.Lasting(d.field, *d.value, d.least, d.most)
	}
	if c.Challenge == "" {
		c.Challenge = "Bearer"
	}
}

// A Stream is one answer that goes on. The handler's goroutine sends; a timer sends heartbeats, so that an idle client costs no second goroutine.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	config  Config
	beside  func(*Out)
	cut     context.CancelFunc

	mu     sync.Mutex // one writes at a time
	begun  bool
	over   bool
	failed error // of a write
	beat   *time.Timer
}

// New makes a stream that has not begun. beside, unless nil, adds to each heartbeat; cut is called when a heartbeat cannot be sent. The error says that
// the ResponseWriter has no deadlines.
func New(w http.ResponseWriter, config Config, beside func(*Out), cut context.CancelFunc) (*Stream, error) {
	s := &Stream{w: w, control: http.NewResponseController(w), config: config, beside: beside, cut: cut}
	return s, s.control.SetWriteDeadline(time.Now().Add(config.WriteTimeout))
}

// An Out gathers what is sent. It is used with the stream's lock held, within a call of fill or beside only.
type Out struct {
	bytes.Buffer
	stream *Stream
}

// Spill sends what has been gathered if that is much, so that a long answer is never in memory as a whole.
func (o *Out) Spill() {
	if o.Len() >= piece {
		o.stream.write(&o.Buffer)
	}
}

// Send sends what fill writes. The first call begins the stream, even if fill writes nothing.
func (s *Stream) Send(fill func(out *Out, first bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.begun
	if first {
		s.begin()
	}
	out := Out{stream: s}
	if fill(&out, first); out.Len() == 0 && !first {
		return s.failed
	}
	return s.flush(&out)
}

// begin sends the headers and starts the heartbeats.
func (s *Stream) begin() {
	s.begun = true
	_ = s.control.SetReadDeadline(time.Time{}) // http.Server.ReadTimeout is for requests, and would end the stream
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	s.w.WriteHeader(http.StatusOK)
	s.beat = time.AfterFunc(s.config.Heartbeat, s.heartbeat)
}

// heartbeat sends a comment line.
func (s *Stream) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	out := Out{stream: s}
	out.WriteString(":\n")
	if s.beside != nil {
		s.beside(&out)
	}
	out.WriteByte('\n')
	if s.flush(&out) != nil {
		s.cut()
		return
	}
	s.beat.Reset(s.config.Heartbeat)
}

// End waits for a heartbeat under way; afterwards nothing is written any more.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.beat != nil {
		s.beat.Stop()
	}
}

// Begun says whether the first byte is sent, after which no status can be.
func (s *Stream) Begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Broken says whether a write failed.
func (s *Stream) Broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed != nil
}

func (s *Stream) flush(out *Out) error {
	if s.write(&out.Buffer); s.failed == nil {
		s.extend()
		s.failed = s.control.Flush()
	}
	return s.failed
}

// write empties the buffer. After one write that failed it does nothing any more.
func (s *Stream) write(out *bytes.Buffer) {
	for out.Len() > 0 && s.failed == nil {
		s.extend()
		_, s.failed = s.w.Write(out.Next(piece))
	}
	out.Reset()
}

func (s *Stream) extend() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.config.WriteTimeout)) // it could at the start
}
