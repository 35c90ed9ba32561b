package webhook_test

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
	"github.com/fencepost-go/fencepost/webhook"
)

// What comes of a message that a sender posts: its state, its cause, and a reason that went through the redactor.
func TestThroughASender(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status, _ := strconv.Atoi(string(body))
		if status == 503 {
			w.Header().Set("Retry-After", "3600")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "password hunter2 "+strings.Repeat("\x1b\xff", 8<<10))
	})
	store := memdb.New(memdb.Config{})
	box, err := outbox.New(store, outbox.Config{
		Logger: slog.New(slog.DiscardHandler),
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	})
	if err != nil {
		t.Fatal(err)
	}
	err = memdb.InTx(t.Context(), store, box, func(tx *memdb.Tx) error {
		for _, status := range []string{"200", "404", "410", "500", "503"} {
			if _, err := box.Enqueue(t.Context(), tx, outbox.Effect{
				Consumer: "customers", Target: "acme", Kind: "invoice.paid", Key: status, Payload: []byte(status),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	customers, err := box.Consumer("customers", "acme", outbox.Policy{MaxSnooze: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sender.New(box, customers, sender.Config{Handlers: sender.Handlers{"invoice.paid": {Do: poster(t, server.URL, webhook.PosterConfig{}).Do}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	type end struct {
		state   outbox.State
		cause   outbox.Cause
		attempt int
		most    time.Duration // until it is due
	}
	want := map[string]end{
		"200": {outbox.StateDelivered, "", 1, 0}, "404": {outbox.StateDead, outbox.CausePermanent, 1, 0}, "410": {outbox.StateDead, outbox.CauseMoot, 1, 0},
		"500": {outbox.StatePending, "", 1, 30 * time.Second}, "503": {outbox.StatePending, "", 0, 30 * time.Minute},
	}
	for _, state := range []outbox.State{"", outbox.StateDelivered, outbox.StateDead} {
		page, err := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{State: state, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			details, err := box.Show(t.Context(), outbox.AllTenants, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			w := want[m.Key]
			delete(want, m.Key)
			if m.State != w.state || m.Cause != w.cause || m.Attempt != w.attempt || w.most > 0 && (time.Until(details.DueAt) > w.most || time.Until(details.DueAt) < w.most*7/10) {
				t.Errorf("%s: %+v, due in %v", m.Key, m, time.Until(details.DueAt))
			}
			if strings.Contains(m.Reason, "hunter2") || len(m.Reason) > 4<<10 || m.State != outbox.StateDelivered && !strings.HasPrefix(m.Reason, "answered "+m.Key) {
				t.Errorf("%s: %.80q of %d bytes", m.Key, m.Reason, len(m.Reason))
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("not found: %v", want)
	}
}
