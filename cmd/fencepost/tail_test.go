package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// tailOutput is written by a running tail while a test reads it.
type tailOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *tailOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *tailOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startTail runs tail until stop, which must end well.
func startTail(t *testing.T, f fixture, args ...string) (out *tailOutput, stop func()) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	out, ended := &tailOutput{}, make(chan int)
	go func() {
		ended <- run(ctx, append(args, "tail", "--every", "100ms", "--dsn", f.dsn), strings.NewReader(""), out, &stderr)
	}()
	// A message that it shows proves that it follows.
	await(t, "tail to follow", func() bool {
		f.enqueue(t, outbox.Effect{Kind: "probe", Key: time.Now().Format(time.RFC3339Nano)})
		return strings.Contains(out.String(), "probe")
	})
	return out, func() {
		t.Helper()
		interrupt()
		if code := <-ended; code != exitOK || stderr.Len() > 0 {
			t.Errorf("tail: code %d, %s", code, &stderr)
		}
	}
}

// withoutProbes gives the lines of a tail but for those of startTail.
func withoutProbes(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "probe") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func TestTail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	out, stop := startTail(t, f)
	documents, stopDocuments := startTail(t, f, "--json")
	step := func(what string, do func()) {
		t.Helper()
		do()
		for _, o := range []*tailOutput{out, documents} {
			await(t, what, func() bool { return strings.Contains(withoutProbes(o.String()), what) })
		}
	}
	step("order-x", func() {
		f.sql(t, "SELECT setval('outbox.message_id_seq', 1000)")
		f.enqueue(t, outbox.Effect{Kind: "late", Key: "order-x" + hostile[:5]}, outbox.Effect{Kind: "later", Key: "order-y", Delay: time.Hour})
	})
	step("delivered", func() { f.settleAll(t, "late", outbox.Delivered()) })
	step("no such address", func() {
		f.sql(t, "UPDATE outbox.queue SET due_at = now() WHERE kind = 'later'")
		f.settleAll(t, "later", outbox.Failed(outbox.Permanent(errors.New("no such address"))))
	})
	step("withdrawn", func() { succeed(t, "cancel", "1", "--reason", "withdrawn", "--dsn", f.dsn) })
	stop()
	stopDocuments()
	golden(t, "tail", withoutProbes(out.String()))
	golden(t, "tail_json", withoutProbes(documents.String()))
	for line := range strings.Lines(documents.String()) {
		var m messageSummary
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.ID == "" || strings.ContainsFunc(line, isControl) {
			t.Errorf("%v in %q", err, line)
		}
	}
}

func (f fixture) settleAll(t *testing.T, kind string, outcome outbox.Outcome) {
	t.Helper()
	shop := f.consumer(t)
	for _, m := range f.lease(t, shop, kind) {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outcome); err != nil {
			t.Fatal(err)
		}
	}
}

// Each message shows once, however many there are, and filters hold.
func TestTailShowsEachOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	out, stop := startTail(t, f, "--json")
	const n = 2500
	f.many(t, "rush", n)
	await(t, "all to be opened", func() bool { return strings.Count(out.String(), `"kind":"rush"`) >= n })
	f.bury(t, "rush", "attempts")
	await(t, "all to die", func() bool { return strings.Count(out.String(), `"kind":"rush"`) >= 2*n })
	f.enqueue(t, outbox.Effect{Kind: "last", Key: "last"})
	await(t, "the last", func() bool { return strings.Contains(out.String(), `"kind":"last"`) })
	stop()
	shown := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var m messageSummary
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if shown[m.State+m.ID]++; m.Kind == "rush" && shown[m.State+m.ID] > 1 {
			t.Fatalf("twice: %s", line)
		}
	}
}

// What a look cannot read is said to be left out.
func TestTailSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tail := tailing{connection: connection{timeout: time.Minute}, scope: func() outbox.Scope { return outbox.AllTenants }, states: []string{"dead"}}
	followers, err := tail.followers(t.Context(), f.box)
	if err != nil || len(followers) != 1 {
		t.Fatal(followers, err)
	}
	f.many(t, "rush", tailPages*pageSize+1)
	f.bury(t, "rush", "attempts")
	found, cut, err := followers[0](t.Context())
	if err != nil || len(found) != tailPages*pageSize || !cut {
		t.Errorf("%d found, cut %t, %v", len(found), cut, err)
	}
	if found, cut, err := followers[0](t.Context()); err != nil || len(found) != 0 || !cut {
		t.Errorf("then %d found, cut %t, %v", len(found), cut, err)
	}
}

func TestHighestOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, want := range []int64{8, 1 << 40} {
		if got, err := highestOpen(t.Context(), f.box); err != nil || got != want {
			t.Errorf("%d, %v; want %d", got, err, want)
		}
		f.sql(t, "SELECT setval('outbox.message_id_seq', (1::bigint << 40) - 1)")
		f.enqueue(t, outbox.Effect{Kind: "k", Key: "far"})
	}
}
