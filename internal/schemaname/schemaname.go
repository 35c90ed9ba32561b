// Package schemaname puts SQL into a schema of another name.
//
// Every statement of fencepost is constant text that names the schema outbox. An installation under another name runs the
// same text with that qualifier swapped. This is the only place where the name of a schema is put into SQL, so it is also
// where the name is limited: none that passes Validate can end the quotes that Swap puts around it.
package schemaname

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Default is the schema that the SQL is written for.
const Default = "outbox"

// maxLength is PostgreSQL's limit in bytes. It cuts a longer identifier silently, so that two names could meet in one.
const maxLength = 63

var allowed = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Validate says why a schema may not have this name.
func Validate(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case len(name) > maxLength:
		return fmt.Errorf("has %d bytes, more than %d", len(name), maxLength)
	case !allowed.MatchString(name):
		return fmt.Errorf("%q holds more than the letters A to Z and a to z, digits, _ and -", name)
	case strings.HasPrefix(name, "pg_") || name == "information_schema":
		return fmt.Errorf("%q is reserved by PostgreSQL", name)
	}
	return nil
}

// Quote returns a valid name as an identifier. The quotes keep its capitals and allow a hyphen, a leading digit and a
// keyword.
func Quote(name string) string { return `"` + name + `"` }

// token matches what Swap must look at as a whole, and captures the name where it is one of our schema. A comment, a
// literal or a quoted identifier is one token, so that nothing inside it is taken for a qualifier; a word is one, with the
// dot before it, so that neither a longer word nor a column is.
var token = regexp.MustCompile(strings.Join([]string{
	`--[^\n]*`,
	`(?s:/\*.*?\*/)`,
	`(?i:\bnextval)\s*\(\s*'(outbox)\.[^']*'`,
	`'(outbox)'::regnamespace\b`,
	`(?i:\bE)'(?:[^'\\]|\\.|'')*'`,
	`'(?:[^']|'')*'`,
	`"[^"]*"`,
	`(?i:\bschema\s+(?:if\s+(?:not\s+)?exists\s+)?)(outbox)\b`,
	`(outbox)\.`,
	`\.?[\pL_][\pL\pN_$]*`,
}, "|"))

// Swap returns the SQL for the schema of that name, which must be valid. It replaces the qualifier outbox. where a word
// begins, the same in the argument of nextval, and the name after the word SCHEMA and before ::regnamespace. Other literals stay
// as they are.
func Swap(sql, name string) string {
	if name == Default {
		return sql
	}
	var swapped strings.Builder
	rest := 0
	for _, match := range token.FindAllStringSubmatchIndex(sql, -1) {
		for group := 2; group < len(match); group += 2 {
			if start, end := match[group], match[group+1]; start >= 0 {
				swapped.WriteString(sql[rest:start])
				swapped.WriteString(Quote(name))
				rest = end
			}
		}
	}
	swapped.WriteString(sql[rest:])
	return swapped.String()
}
