package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// tell appends what the examples of events and ledger speak of, and waits until it can be read.
func (f fixture) tell(t *testing.T) {
	t.Helper()
	log := f.log(t)
	f.append(t,
		events.Event{ID: "order-77-paid", Stream: "order-77", Type: "order_paid", Payload: []byte("{\"sku\": 7}\n" + hostile[:12]), Metadata: map[string]string{"trace": "t\t1"}},
		events.Event{ID: "order-78-paid", Stream: "order-78", Type: "order_paid"},
		events.Event{ID: "order-77-sent\u202e", Stream: "order-77", Type: "order_sent", Tenant: "acme", Payload: []byte{0xff, 0, 1}},
	)
	page := f.stream(t, 3)
	digest := make([]byte, 32)
	err := f.on.store.Transact(t.Context(), func(tx db.Tx) error {
		for i, name := range []string{"search", "backfill:mails"} {
			if err := log.SaveReader(t.Context(), tx, name, events.Cursor{}, page.Events[i].Cursor()); err != nil {
				return err
			}
		}
		for key, hold := range map[string]time.Duration{"order-77": time.Hour, "order-78": time.Hour, "order-79": time.Microsecond} {
			if _, err := f.on.store.Claim(t.Context(), tx, db.ClaimParams{
				Scope: "charges", Key: key, Digest: digest, Token: []byte("0123456789abcdef"), Hold: hold.Microseconds(),
			}); err != nil {
				return err
			}
		}
		if _, err := f.on.store.EndClaim(t.Context(), tx, db.EndClaimParams{
			State: db.ClaimCompleted, Result: []byte("receipt 9" + hostile[:5]), Scope: "charges", Key: "order-77", Token: []byte("0123456789abcdef"),
		}); err != nil {
			return err
		}
		_, err := f.on.store.RecordClaim(t.Context(), tx, db.RecordClaimParams{
			Tenant: "acme", Scope: "books", Key: "order-77-sent", Digest: digest, State: db.ClaimRejected, Reason: "the year is closed" + hostile[:5],
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f fixture) log(t *testing.T) *events.Log {
	t.Helper()
	log, err := events.New(f.box, events.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func (f fixture) append(t *testing.T, given ...events.Event) {
	t.Helper()
	err := f.on.store.Transact(t.Context(), func(tx db.Tx) error {
		_, err := f.log(t).Append(t.Context(), tx, given...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stream waits until so many events can be read, for as long as a transaction of another test holds the stream back.
func (f fixture) stream(t *testing.T, n int) events.Page {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		page, err := f.log(t).Read(t.Context(), events.Cursor{}, 1000, events.Filter{Scope: outbox.AllTenants})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == n {
			return page
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events can be read, not %d", len(page.Events), n)
		}
	}
}

// Shows: S4.25
func TestEventsAndLedger(t *testing.T) {
	onEach(t, func(t *testing.T, f fixture) {
		f.tell(t)
		s := transcript{t: t, dsn: f.dsn}
		s.run("events", "readers")
		s.run("events", "tail", "--limit", "10")
		s.run("events", "tail", "--limit", "10", "--tenant", "acme", "--json")
		s.run("events", "tail", "--limit", "1", "--after", "oldest", "--type", "order_sent", "--type", "order_paid", "--stream", "order-77")
		s.run("events", "show", "order-77-paid")
		s.run("events", "show", "order-77-sent\u202e", "--tenant", "acme")
		s.run("events", "show", "order-77-sent\u202e")
		s.run("events", "show", "order-78-paid", "--json")
		s.run("events", "backfill")
		s.run("events", "readers", "--remove", "search")
		s.run("events", "readers", "--remove", "search", "--yes")
		s.run("events", "readers", "--remove", "search", "--yes")
		s.run("events", "readers", "--json")
		s.run("ledger", "show", "charges", "order-77")
		s.run("ledger", "show", "charges", "order-78")
		s.run("ledger", "show", "charges", "order-79", "--json")
		s.run("ledger", "show", "books", "order-77-sent", "--tenant", "acme")
		s.run("ledger", "show", "books", "order-77-sent")
		golden(t, "events", regexp.MustCompile(`[\w-]{86,88}`).ReplaceAllString(s.String(), "CURSOR"))
	})
}

// A tail shows each event once and in order, from where it was told on, and a cursor of another database is refused.
func TestEventsTail(t *testing.T) {
	onEach(t, func(t *testing.T, f fixture) {
		f.tell(t)
		ctx, interrupt := context.WithCancel(t.Context())
		out, ended := &tailOutput{}, make(chan int)
		var stderr bytes.Buffer
		go func() {
			ended <- run(ctx, []string{"events", "tail", "--json", "--after", f.stream(t, 3).Events[0].Cursor().String(), "--every", "100ms", "--dsn", f.dsn},
				strings.NewReader(""), out, &stderr)
		}()
		await(t, "what was there", func() bool { return strings.Count(out.String(), "\n") == 2 })
		many := make([]events.Event, 600) // more than a page
		for i := range many {
			many[i] = events.Event{Type: "many"}
		}
		f.append(t, many...)
		f.stream(t, 603)
		await(t, "what came", func() bool { return strings.Count(out.String(), "\n") >= 602 })
		interrupt()
		if code := <-ended; code != exitOK || stderr.Len() > 0 {
			t.Errorf("code %d, %s", code, &stderr)
		}
		var shown []string
		for line := range strings.Lines(out.String()) {
			var e eventReport
			if err := json.Unmarshal([]byte(line), &e); err != nil || strings.ContainsFunc(line, isControl) {
				t.Fatalf("%v in %q", err, line)
			}
			shown = append(shown, e.ID)
		}
		var want []string
		for _, e := range f.stream(t, 603).Events[1:] {
			want = append(want, e.ID)
		}
		if !slices.Equal(shown, want) {
			t.Errorf("%d shown, %d wanted, or another order", len(shown), len(want))
		}
		other := openFileFixture(t)
		if r := command(t, "events", "tail", "--after", f.stream(t, 603).Next.String(), "--limit", "1", "--dsn", other.dsn); r.code != exitNotDone || !strings.Contains(r.stderr, "another database's") {
			t.Errorf("code %d, %s", r.code, r.stderr)
		}
	})
}
