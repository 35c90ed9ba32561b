package sender

import (
	"context"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

// What a handler panicked with is an error text like any other: the redactor sees it before the log does.
func TestPanicsAreRedacted(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		redact := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
		b.open(outbox.Config{Logger: b.log.logger(), Redact: redact})
		id := b.enqueue(effect("a"))[0]
		b.runOnce(b.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error { panic("password hunter2") })}))
		if lines := b.log.lines("password ***"); len(lines) != 1 || len(b.log.lines("hunter2")) != 0 {
			b.Errorf("logged %v", b.log.lines(""))
		}
		if got := b.row(id).LastError; got != "handler panicked: password ***" {
			b.Errorf("recorded %q", got)
		}
	})
}
