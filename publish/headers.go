package publish

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost-go/fencepost/outbox"
)

// Prefix begins the names of the headers that a publisher sets by itself.
const Prefix = "fencepost-"

// Headers of a published message, after Prefix: the same for every broker.
const (
	ID      = Prefix + "id"      // MessageID: what a consumer deduplicates by
	Key     = Prefix + "key"     // outbox.Message.Key
	Tenant  = Prefix + "tenant"  // outbox.Message.Tenant; no header when it is empty
	Kind    = Prefix + "kind"    // outbox.Message.Kind
	Epoch   = Prefix + "epoch"   // outbox.Message.Epoch: with the id a fence
	Attempt = Prefix + "attempt" // outbox.Message.Attempt
)

// A Header is one header.
type Header struct{ Name, Value string }

// MessageID identifies a message across attempts, replays and restored databases: its tenant, consumer and key, each escaped as a segment of a
// path, with slashes between. It is of visible ASCII, at most 1,535 bytes, and no two messages share one unless they share all three.
func MessageID(m outbox.Message) string {
	return url.PathEscape(m.Tenant) + "/" + url.PathEscape(m.Consumer) + "/" + url.PathEscape(m.Key)
}

// Headers are the publisher's own, then the metadata sorted by name, the trace context among it under its usual names (traceparent, tracestate,
// baggage). A name of the metadata that begins, in any case, with Prefix or one of the reserved prefixes would pass for what it is not: its first byte is
// escaped as in a URL, %66encepost-id.
func Headers(m outbox.Message, reserved ...string) []Header {
	headers := []Header{{ID, MessageID(m)}, {Key, m.Key}}
	if m.Tenant != "" {
		headers = append(headers, Header{Tenant, m.Tenant})
	}
	headers = append(headers, Header{Kind, m.Kind}, Header{Epoch, strconv.FormatInt(m.Epoch, 10)}, Header{Attempt, strconv.Itoa(m.Attempt)})
	reserved = append(slices.Clone(reserved), Prefix)
	for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
		value := m.Metadata[name]
		if slices.ContainsFunc(reserved, func(prefix string) bool { return beginsWith(name, prefix) }) {
			name = Escape(name[:1], nil) + name[1:]
		}
		headers = append(headers, Header{name, value})
	}
	return headers
}

func beginsWith(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// Escape writes each byte that a broker does not allow as in a URL, %0A; of nil, each byte.
func Escape(text string, allowed func(byte) bool) string {
	const digits = "0123456789ABCDEF"
	var escaped strings.Builder
	for i := range len(text) {
		if c := text[i]; allowed != nil && allowed(c) {
			escaped.WriteByte(c)
		} else {
			escaped.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return escaped.String()
}
