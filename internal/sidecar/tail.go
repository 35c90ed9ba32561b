package sidecar

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/internal/bounds"
)

const (
	kept          = 2 * bounds.Reason // bytes of an output, more than are shown, so that secrets are found whole
	longestSecret = 1 << 10
)

// A tail keeps the end of what is written to it.
type tail struct {
	last []byte
	more bool // was written before
}

func (t *tail) Write(p []byte) (int, error) {
	if t.last = append(t.last, p...); len(t.last) > kept {
		t.last, t.more = append(t.last[:0], t.last[len(t.last)-kept:]...), true
	}
	return len(p), nil
}

// text is the end of it, at most limit bytes of UTF-8 that a table can keep and a terminal may see.
func (t *tail) text(redact func(string) string, limit int) string {
	text := string(t.last)
	if redact != nil {
		if text = redact(text); t.more {
			text = text[min(longestSecret, len(text)):] // which may be a part of one
		}
	}
	return strings.TrimSpace(end(strings.Map(storable, text), limit))
}

// storable is what outbox makes of a text too; it could make one longer that was cut before.
func storable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
		return utf8.RuneError
	}
	return r // strings.Map turns a byte that is not UTF-8 into U+FFFD
}

// end is the last bytes of a text, without splitting a rune.
func end(text string, limit int) string {
	from := max(len(text)-limit, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
