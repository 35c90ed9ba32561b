// Package bounds has the rules for texts that are stored: what a database cannot keep, an index cannot hold or a person cannot read is
// refused before any statement. The schema has each of them again as a CHECK.
package bounds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds in bytes.
const (
	// Name bounds consumers, targets, kinds, tenants, workers, order keys, streams, types, scopes.
	Name = 128
	// Key bounds keys.
	Key = 255
	// EventID bounds the ids of events.
	EventID = 64
	// Reason bounds reasons and results kept as text.
	Reason = 4 << 10
	// LargestPayload bounds what Config.MaxPayload may allow.
	LargestPayload = 1 << 20

	metadataEntries = 64
	metadataBytes   = 8 << 10
)

// Any is the wildcard of a pause, which no name may be.
const Any = "*"

// Reserved are the names in metadata that the library sets (the trace a message belongs to).
var Reserved = []string{"traceparent", "tracestate", "baggage"}

// A Report is told each problem of a value.
type Report func(problem string)

// CheckName refuses what cannot name something.
func CheckName(value string, limit int, report Report) {
	notAny(value, report)
	CheckRequired(value, limit, report)
}

// CheckOptionalName is CheckName for a tenant, which may be empty.
func CheckOptionalName(value string, limit int, report Report) {
	notAny(value, report)
	CheckOptional(value, limit, report)
}

func notAny(value string, report Report) {
	if value == Any {
		report("is the wildcard *, which no name may be")
	}
}

// CheckRequired refuses a blank text.
func CheckRequired(value string, limit int, report Report) {
	if value == "" {
		report("is blank")
		return
	}
	CheckOptional(value, limit, report)
}

// CheckOptional refuses a text of nothing but white space. It is trimmed only to test it.
func CheckOptional(value string, limit int, report Report) {
	if value != "" && strings.TrimSpace(value) == "" {
		report("is blank")
	}
	CheckText(value, limit, report)
}

// CheckText refuses what a database cannot store or an index cannot hold.
func CheckText(value string, limit int, report Report) {
	if len(value) > limit {
		report(fmt.Sprintf("has %d bytes, at most %d are allowed", len(value), limit))
		return
	}
	if at := strings.IndexByte(value, 0); at >= 0 {
		report(fmt.Sprintf("has a NUL at byte %d", at))
	}
	if at := InvalidUTF8(value); at >= 0 {
		report(fmt.Sprintf("is not UTF-8 at byte %d", at))
	}
}

// InvalidUTF8 is the place of the first byte that is not UTF-8, or -1.
func InvalidUTF8(value string) int {
	if utf8.ValidString(value) {
		return -1
	}
	for at := 0; at < len(value); {
		r, size := utf8.DecodeRuneInString(value[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// CheckPayload refuses one that is too long.
func CheckPayload(payload []byte, limit int, report Report) {
	if len(payload) > limit {
		report(fmt.Sprintf("has %d bytes, at most %d are allowed", len(payload), limit))
	}
}

// CheckMetadata refuses metadata that is too much, has no name or one of the library's. The report is told the field: Metadata, or an entry of it.
func CheckMetadata(metadata map[string]string, report func(field, problem string)) {
	if len(metadata) > metadataEntries {
		report("Metadata", fmt.Sprintf("has %d entries, at most %d are allowed", len(metadata), metadataEntries))
		return
	}
	size := 0
	for name, value := range metadata {
		size += len(name) + len(value)
	}
	if size > metadataBytes {
		report("Metadata", fmt.Sprintf("has %d bytes, at most %d are allowed", size, metadataBytes))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		of := func(field string) Report { return func(problem string) { report(field, problem) } }
		switch {
		case strings.TrimSpace(name) == "":
			report("Metadata", "has a blank name")
		case slices.Contains(Reserved, name):
			report("Metadata", fmt.Sprintf("has %q, which the library sets", name))
		}
		CheckText(name, metadataBytes, of("Metadata"))
		CheckText(metadata[name], metadataBytes, of(fmt.Sprintf("Metadata[%q]", name)))
	}
}
