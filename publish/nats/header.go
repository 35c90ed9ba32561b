package natspub

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish"
)

// header is publish.Headers and the id that the stream deduplicates by. What NATS does not allow is escaped as in a URL (%0A): in names all but
// visible ASCII without the delimiters of HTTP; in values line breaks, other control characters and white space at the ends, with the percent
// sign only where one of these is there too. Names that begin with Nats- would be orders to the server and are escaped as well.
func header(m outbox.Message) nats.Header {
	header := nats.Header{jetstream.MsgIDHeader: {publish.MessageID(m)}}
	for _, h := range publish.Headers(m, "Nats-") {
		name := publish.Escape(h.Name, allowedInName)
		header[name] = append(header[name], value(h.Value))
	}
	return header
}

func allowedInName(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte("\"()/,:;<=>?@[\\]{}", c) < 0
}

func value(text string) string {
	const edges = " \t\r\n" // the client cuts these off
	trimmed := strings.Trim(text, edges)
	if trimmed == text && strings.IndexFunc(text, control) < 0 {
		return text
	}
	head, tail, _ := strings.Cut(text, trimmed)
	return publish.Escape(head, nil) + publish.Escape(trimmed, func(c byte) bool { return c != '%' && !control(rune(c)) }) + publish.Escape(tail, nil)
}

func control(r rune) bool { return r < ' ' || r == 0x7f }
