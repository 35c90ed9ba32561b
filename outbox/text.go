package outbox

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestText is what is looked at of a text before it is cut for the table: an error may carry a whole response body.
const longestText = 64 << 10

// storable turns any text into one that can be recorded: redacted, sanitised, trimmed and cut. It never fails.
func (b *Box) storable(text string, limit int) string {
	if text == "" {
		return ""
	}
	text = cut(text, longestText)
	if b.redact != nil {
		redacted, problem := contain(func() string { return b.redact(text) })
		if problem != nil {
			b.observer.Contained("Config.Redact", problem)
			redacted = "(withheld: the redactor failed)" // what it panicked with may hold the secret
		}
		text = cut(redacted, longestText)
	}
	return strings.TrimSpace(cut(strings.TrimSpace(sanitise(text)), limit))
}

// reason is storable for a text that must not be blank.
func (b *Box) reason(text string, limit int) string {
	if stored := b.storable(text, limit); stored != "" {
		return stored
	}
	return "(nothing left after redaction)"
}

// sanitise replaces what a database cannot store and a terminal should not see (NUL, bytes that are not UTF-8, control characters other
// than tab and line breaks) by U+FFFD.
func sanitise(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			return utf8.RuneError
		}
		return r // strings.Map turns a byte that is not UTF-8 into U+FFFD
	}, text)
}

// cut shortens a text to at most limit bytes without splitting a rune.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
