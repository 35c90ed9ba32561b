package outbox

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// A recorder keeps what is logged.
type recorder struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *recorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.FieldsFunc(r.buf.String(), func(c rune) bool { return c == '\n' })
}
