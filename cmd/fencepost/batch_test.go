package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

// batches makes two batches: of the first nothing is performed, of the second one row is delivered and one is dead.
func (f fixture) batches(t *testing.T) {
	t.Helper()
	b, err := batch.New(f.box, batch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := batch.NewRows(batch.RowsConfig[map[string]any]{})
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []struct{ key, kind, lines string }{
		{"april", "remind", "{\"email\": \"ann@example.com\"}\n[]\n{}\n{}\n"}, {"march", "invite", "{\"email\": \"bob@example.com\"}\n{}\n"},
	} {
		spec := batch.Spec{Tenant: "acme", Consumer: "shop", Target: "warehouse", Kind: given.kind, Key: given.key}
		if _, err := b.Create(t.Context(), spec, rows.Reader(strings.NewReader(given.lines))); err != nil {
			t.Fatal(err)
		}
	}
	f.invite(t)
}

// invite performs every row of the kind invite: the first is delivered, the others fail.
func (f fixture) invite(t *testing.T) {
	t.Helper()
	shop := f.consumer(t)
	worker, err := f.box.RegisterWorker(t.Context(), "worker-1", "host")
	if err != nil {
		t.Fatal(err)
	}
	messages, err := f.box.Lease(t.Context(), shop, outbox.LeaseRequest{Worker: worker, Kinds: []string{"invite"}, Scope: outbox.AllTenants, Limit: 100, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		outcome := outbox.Failed(outbox.Permanent(errors.New("no such address" + hostile[:5])))
		if strings.HasSuffix(m.Key, "/1") {
			outcome = outbox.DeliveredWith("mail-1" + hostile[:5])
		}
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outcome); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBatch(t *testing.T) {
	onEach(t, func(t *testing.T, f fixture) {
		file := inputFile(t, `{"email": "ann@example.com"}`, ``, `[1]`, `{"email": `, `{"email": "bob@example.com"}`, `{}`)
		s := transcript{t: t, dsn: f.dsn}
		create := []string{"batch", "create", file, "--consumer", "shop", "--target", "warehouse", "--kind", "invite", "--key", "may"}
		s.run("batch", "list")
		end := []string{"--on-complete", `{"consumer": "books", "target": "mail", "kind": "report", "key": "may", "payload": {"n": 1}}`}
		s.run(slices.Concat(create, end)...)
		june := append(slices.Clone(create[:len(create)-1]), "june", "--tenant", "acme")
		s.run(june...)
		s.run(slices.Concat(create, end, []string{"--json"})...)
		s.run(create...)
		june[2] = inputFile(t, `{"email": "ann@example.com"}`, `{"email": "bob@example.com"}`)
		s.run(june...)
		s.run("batch", "show", "1")
		s.run("batch", "rows", "1")
		f.invite(t)
		s.run("batch", "watch", "1")
		s.run("batch", "show", "1", "--json")
		s.run("batch", "rows", "1", "--fate", "delivered", "--limit", "1")
		s.run("batch", "rows", "1", "--fate", "dead", "--json")
		s.run("batch", "rows", "1", "--fate", "cancelled")
		s.run("batch", "rerun", "1", "--yes", "--reason", "the mail server is back")
		s.run("batch", "rerun", "1", "--yes", "--reason", "the mail server is back")
		s.run("batch", "list", "--unfinished")
		s.run("batch", "list", "--limit", "1")
		s.run("batch", "list", "--after", "2", "--json")
		s.run("batch", "cancel", "1", "--yes", "--reason", "the wrong list", "--tenant", "acme")
		s.run("batch", "cancel", "1", "--yes", "--reason", "the wrong list", "--json")
		s.run("batch", "watch", "1", "--json")
		s.run("batch", "show", "7")
		s.run("list", "--consumer", "books")
		out := regexp.MustCompile(`\S+effects.ndjson`).ReplaceAllString(s.String(), "people.ndjson")
		golden(t, "batch", regexp.MustCompile(`(?m)^\d+ +pending`).ReplaceAllString(out, "ID  pending")) // a server leaves ids out
	})
}

// A Ctrl-C ends a create that waits for its input, and a watch.
func TestBatchIsInterrupted(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	f.batches(t)
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result, 1)
	go func() {
		done <- commandWith(ctx, in, "batch", "create", "--consumer", "c", "--target", "t", "--kind", "k", "--key", "b", "--dsn", f.dsn)
		in.Close()
	}()
	if _, err := feed.Write([]byte("{}\n")); err != nil { // it reads
		t.Errorf("%v: %+v", err, <-done)
	}
	cancel()
	if t.Failed() {
		return
	}
	if r := <-done; r.code != exitFailed || !strings.Contains(r.stderr, "interrupted") {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	told := writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	if code := run(ctx, []string{"batch", "watch", "1", "--dsn", f.dsn}, strings.NewReader(""), told, io.Discard); code != exitOK {
		t.Errorf("code %d", code)
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

func TestProgressBar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := progressOutput{out: &out, bar: true}
	for _, p := range []batch.Progress{{}, {Total: 3000, Open: 2000, Delivered: 990, Dead: 10}, {Total: 3, Delivered: 3}} {
		if err := o.show(p); err != nil {
			t.Fatal(err)
		}
	}
	o.end()
	const want = "\r[..............................]   0%  0 rows\x1b[K" +
		"\r[##########....................]  33%  3,000 rows, 2,000 open, 990 delivered, 10 dead\x1b[K" +
		"\r[##############################] 100%  3 rows, 3 delivered\x1b[K\n"
	if out.String() != want {
		t.Errorf("%q", &out)
	}
}

// What --json prints of a batch can be read back.
func TestBatchJSON(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	f.batches(t)
	if p := decode[batch.Progress](t, "batch", "show", "2", "--dsn", f.dsn); p.ID != 2 || p.Delivered != 1 || p.Dead != 1 || !p.Completed() {
		t.Errorf("%+v", p)
	}
	var p batch.Progress
	if err := json.Unmarshal([]byte(succeed(t, "batch", "watch", "2", "--json", "--dsn", f.dsn)), &p); err != nil || p.Dead != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if r := decode[rowsReport](t, "batch", "rows", "1", "--limit", "2", "--dsn", f.dsn); len(r.Rows) != 2 || r.Next != 2 || r.Rows[1].Fate != "rejected" {
		t.Errorf("%+v", r)
	}
	if r := decode[batchesReport](t, "batch", "list", "--limit", "1", "--dsn", f.dsn); len(r.Batches) != 1 || r.Next != "2" {
		t.Errorf("%+v", r)
	}
}

// A key that would act on the terminal is shown escaped.
func TestBatchIsPrintable(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	args := []string{"batch", "create", os.DevNull, "--consumer", "c", "--target", "t", "--kind", "k", "--key", hostile[:12], "--dsn", f.dsn}
	succeed(t, args...)
	for _, args := range [][]string{args, {"batch", "list", "--dsn", f.dsn}, {"batch", "show", "1", "--dsn", f.dsn}, {"batch", "show", "1", "--json", "--dsn", f.dsn}} {
		if out := succeed(t, args...); strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("fencepost %q: %q", args, out)
		}
	}
}
