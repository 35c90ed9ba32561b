package idempotency

import (
	"fmt"
	"strings"

	"github.com/fencepost-go/fencepost/internal/bounds"
)

// parseKey reads the values of the header: one string of a structured field ("8e03978e"), or a key without quotes, as many clients send it. Both
// forms of one key are the same key. The problem is empty for a good one.
func parseKey(values []string) (key, problem string) {
	switch {
	case len(values) == 0:
		return "", "is missing"
	case len(values) > 1:
		return "", "is there more than once"
	}
	value := strings.Trim(values[0], " \t")
	if strings.HasPrefix(value, `"`) {
		key, problem = unquote(value[1:])
	} else {
		key = value
		if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\,;`, r) }) {
			problem = "is neither a quoted string nor a key of visible ASCII without quotes, commas and semicolons"
		}
	}
	switch {
	case problem != "":
		return "", problem
	case strings.TrimSpace(key) == "":
		return "", "is blank"
	case len(key) > bounds.Key:
		return "", fmt.Sprintf("has %d bytes, at most %d are allowed", len(key), bounds.Key)
	}
	return key, ""
}

// unquote reads what follows the opening quote of a string (RFC 8941, section 3.3.3).
func unquote(rest string) (key, problem string) {
	const malformed = "is a malformed string"
	var text strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"' && i == len(rest)-1:
			return text.String(), ""
		case c == '\\' && i+1 < len(rest) && (rest[i+1] == '"' || rest[i+1] == '\\'):
			i++
			text.WriteByte(rest[i])
		case c == '"' || c == '\\' || c < ' ' || c > '~':
			return "", malformed
		default:
			text.WriteByte(c)
		}
	}
	return "", malformed
}

// isToken says whether a text can be the name of a header (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
