package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

func inputFile(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "effects.ndjson")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	file := inputFile(t,
		`{"consumer": "shop", "target": "bank", "kind": "charge", "key": "a", "payload": {"sku":  7}}`,
		``,
		`{"key": "b", "payload_text": "a\nb", "order_key": "customer-1", "tenant": "acme", "priority": -3, "metadata": {"trace": "t"}}`,
		`{"key": "c", "payload_base64": "/wAB", "delay": "90s", "max_age": "1h", "source_position": "9007199254740993", "source_event_id": "e"}`,
		`{"key": "d", "due_at": "2099-01-31T10:15:00Z", "max_age": "none", "source_position": 4}`,
		`{"key": "b", "tenant": "acme", "payload_text": "other"}`,
		`{"key": "d", "max_age": "none"}`,
	)
	defaults := []string{"enqueue", file, "--consumer", "mails", "--target", "smtp", "--kind", "mail", "--dsn", f.dsn}
	var text strings.Builder
	for _, args := range [][]string{defaults, append(defaults, "--json")} {
		r := command(t, args...)
		fmt.Fprintf(&text, "%s%sexit code %d\n\n", r.stdout, r.stderr, r.code)
	}
	golden(t, "enqueue", text.String())
	golden(t, "enqueue_rows", f.rows(t, `SELECT concat_ws('|', tenant, consumer, target, kind, key, order_key, priority, encode(payload, 'escape'), metadata,
		max_age, source_position, source_event_id) FROM outbox.message ORDER BY id`)+"\n")
	if got := f.rows(t, `SELECT concat_ws(' ', m.key, due_at - m.created_at) FROM outbox.queue JOIN outbox.message AS m ON id = message_id
		WHERE m.key IN ('a', 'c') ORDER BY 1`); got != "a 00:00:00\nc 00:01:30" {
		t.Errorf("due after\n%s", got)
	}
}

// The same input again stores nothing twice, wherever the run before ended.
func TestEnqueueGoesOnByKey(t *testing.T) { onEach(t, testEnqueueGoesOnByKey) }

func testEnqueueGoesOnByKey(t *testing.T, f fixture) {
	var lines []string
	for i := range 25 {
		lines = append(lines, fmt.Sprintf(`{"key": "key-%d"}`, i))
	}
	args := []string{"enqueue", inputFile(t, append(lines[:17:17], "{")...), "--consumer", "c", "--target", "t", "--kind", "k", "--chunk", "5", "--dsn", f.dsn}
	broken := command(t, args...)
	if broken.code != exitFailed || broken.stdout != "recorded 15, duplicates 0, conflicts 0\n" || !strings.Contains(broken.stderr, "line 18: is an unfinished JSON object") {
		t.Fatalf("code %d, %s%s", broken.code, broken.stdout, broken.stderr)
	}
	args[1] = inputFile(t, lines...)
	if r := decode[enqueueReport](t, args...); r.Recorded != 10 || r.Duplicates != 15 {
		t.Errorf("again: %+v", r)
	}
	if r := decode[enqueueReport](t, args...); r.Recorded != 0 || r.Duplicates != 25 {
		t.Errorf("and again: %+v", r)
	}
}

// What is wrong with a line is said with its number, and its chunk is not stored.
func TestEnqueueRefusesBadLines(t *testing.T) { onEach(t, testEnqueueRefusesBadLines) }

func testEnqueueRefusesBadLines(t *testing.T, f fixture) {
	for bad, want := range map[string]string{
		`null`:                                                          "Key is blank",
		`[]`:                                                            "is no JSON object",
		`{"key": "x"`:                                                   "unfinished",
		`{"key": "x"} {"key": "y"}`:                                     "more than one JSON object",
		`{"key": "x", "keys": "y"}`:                                     `unknown field "keys"`,
		`{"key": "x", "priority": "high"}`:                              "priority cannot be a JSON string",
		`{"key": "x", "priority": 40000}`:                               "priority cannot be a JSON number",
		`{"key": ""}`:                                                   "Key is blank",
		`{"key": "x", "kind": "*"}`:                                     "Kind is the wildcard",
		`{"key": "x", "delay": "0"}`:                                    "delay must be between",
		`{"key": "x", "delay": "-1s"}`:                                  "delay must be between",
		`{"key": "x", "delay": "none"}`:                                 "delay is not a duration",
		`{"key": "x", "max_age": "0s"}`:                                 "max_age must be between",
		`{"key": "x", "due_at": "tomorrow"}`:                            "parsing time",
		`{"key": "x", "source_position": 0.5}`:                          "source_position is no whole number",
		`{"key": "x", "source_position": -1}`:                           "SourcePosition is negative",
		`{"key": "x", "payload": 1, "payload_text": "1"}`:               "more than one of payload",
		`{"key": "x", "payload_base64": "?"}`:                           "illegal base64",
		"{\"key\": \"x\xff\"}":                                          "is not UTF-8",
		`{"key": "x", "metadata": {"baggage": "1"}}`:                    "which the library sets",
		`{"key": "` + strings.Repeat("x", 300) + `"}`:                   "Key has 300 bytes",
		`{"key": "x", "payload": "` + strings.Repeat("x", 1<<20) + `"}`: "Payload has 1048578 bytes",
	} {
		r := command(t, "enqueue", inputFile(t, `{"key": "good"}`, bad), "--consumer", "c", "--target", "t", "--kind", "k", "--dsn", f.dsn)
		if r.code != exitFailed || !strings.Contains(r.stderr, "line 2: ") || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%.80s: code %d, %.300s\nwant %q", bad, r.code, r.stderr, want)
		}
	}
	if got := f.rows(t, "SELECT key FROM outbox.message"); got != "" {
		t.Errorf("stored %s", got)
	}
	endless := `{"key": "x", "payload_text": "` + strings.Repeat("x", longestLine)
	if r := command(t, "enqueue", inputFile(t, endless), "--dsn", f.dsn); r.code != exitFailed ||
		!strings.Contains(r.stderr, "line 1: is longer than 8 MiB") {
		t.Errorf("endless: code %d, %.300s", r.code, r.stderr)
	}
}

// A slow pipe is not kept waiting for a full chunk, and a Ctrl-C ends a wait for more.
func TestEnqueueFromAPipe(t *testing.T) { onEach(t, testEnqueueFromAPipe) }

func testEnqueueFromAPipe(t *testing.T, f fixture) {
	in, writer := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan result)
	go func() {
		ended <- commandWith(ctx, in, "enqueue", "-", "--consumer", "c", "--target", "t", "--kind", "k", "--dsn", f.dsn)
	}()
	fmt.Fprintln(writer, `{"key": "a"}`)
	await(t, "the message", func() bool { return f.rows(t, "SELECT key FROM outbox.message") == "a" })
	interrupt()
	r := <-ended
	if r.code != exitFailed || r.stdout != "recorded 1, duplicates 0, conflicts 0\n" || r.stderr != "fencepost: interrupted\n" {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	writer.Close()
}

func TestEnqueueTellsItsProgress(t *testing.T) { onEach(t, testEnqueueTellsItsProgress) }

func testEnqueueTellsItsProgress(t *testing.T, f fixture) {
	var told bytes.Buffer
	e := &enqueueing{connection: connection{timeout: time.Minute}, chunk: 2, defaults: outbox.Effect{Consumer: "c", Target: "t", Kind: "k"}}
	fd := feed{enqueueing: e, on: f.on, box: f.box, progress: &progress{out: &told}}
	if err := fd.run(t.Context(), strings.NewReader("{\"key\": \"a\"}\n{\"key\": \"b\"}\n{\"key\": \"a\"}")); err != nil {
		t.Fatal(err)
	}
	if told.String() != "2 lines: 2 recorded, 0 duplicates\n3 lines: 2 recorded, 1 duplicates\n" {
		t.Error(&told)
	}
}
