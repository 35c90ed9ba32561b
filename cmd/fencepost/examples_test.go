package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/webhook"
)

// What the id of the examples stands for: a message that the command can do something about.
var exampleIDs = map[string]string{
	"show": "5", "retries": "1", "replay": "5", "resolve": "6", "cancel": "1",
	"batch show": "1", "batch rows": "1", "batch watch": "2", "batch cancel": "1", "batch rerun": "2",
}

var (
	exampleLine = regexp.MustCompile(`(?m)^  (?:echo '([^']*)' \| )?(?:source <\()?fencepost ([^|>)\n]+)`)
	exampleWord = regexp.MustCompile(`"[^"]*"|\S+`)
)

// Every example in the help of a command works as it stands there, on a database that has what it is about.
func TestExamples(t *testing.T) {
	t.Parallel()
	f := newExampleFixture(t)
	f.pool.Close()
	tried := 0
	for _, cmd := range allCommands() {
		if cmd.Name() == "demo" {
			continue // TestDemo
		}
		lines := exampleLine.FindAllStringSubmatch(cmd.Example, -1)
		if len(lines) != strings.Count(cmd.Example, "fencepost ") {
			t.Errorf("of the examples of %s only %d were understood", cmd.CommandPath(), len(lines))
		}
		tried += len(lines)
		if cmd.HasSubCommands() {
			continue // those of its members
		}
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			t.Parallel()
			dsn := ""
			if cmd.Flags().Lookup("dsn") != nil {
				dsn = pgtest.Copy(t, f.dsn)
			}
			for _, line := range lines {
				tryExample(t, cmd, dsn, line[1], line[2])
			}
		})
	}
	if tried < 35 {
		t.Errorf("only %d", tried)
	}
}

func tryExample(t *testing.T, cmd *cobra.Command, dsn, stdin, line string) {
	t.Helper()
	var args []string
	for _, arg := range exampleWord.FindAllString(line, -1) {
		switch arg = strings.Trim(arg, `"`); {
		case arg == "4711":
			arg = exampleIDs[strings.TrimPrefix(cmd.CommandPath(), "fencepost ")]
		case cmd.Name() == "move" && strings.HasPrefix(arg, filePrefix):
			arg = newMovingFile(t).dsn
		case cmd.Name() == "move" && strings.HasPrefix(arg, "postgres:"):
			arg = pgtest.New(t)
		case strings.HasSuffix(arg, ".ndjson"):
			arg = inputFile(t, `{"consumer": "shop", "target": "bank", "kind": "charge", "key": "order-77", "payload": {"sku": 7}}`)
		case strings.HasSuffix(arg, ".credential"):
			arg = filepath.Join(t.TempDir(), arg)
		case strings.HasSuffix(arg, ".secret"):
			arg = inputFile(t, webhook.NewSecret().Reveal())
		}
		args = append(args, arg)
	}
	ctx := t.Context()
	if cmd.Name() == "work" && !strings.Contains(line, "--once") || cmd.Name() == "tail" && !(cmd.Parent().Name() == "events" && strings.Contains(line, "--limit")) { // that one ends by itself
		limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	if cmd.CommandPath() == "fencepost batch watch" { // whose batch is completed
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer func() {
			if limited.Err() != nil {
				t.Errorf("fencepost %s does not end", line)
			}
			cancel()
		}()
		ctx = limited
	}
	if dsn != "" {
		end := len(args)
		if cmd.Name() == "work" {
			end = 1 // what follows --exec is the command's
		}
		args = slices.Insert(args, end, "--dsn", dsn)
	}
	r := commandWith(ctx, strings.NewReader(stdin), args...)
	if cmd.Name() == "doctor" && strings.HasSuffix(r.stderr, "critical\n") {
		r.code, r.stderr = exitOK, "" // the tests' server may be one that loses what a crash interrupts
	}
	if cmd.Name() == "work" && strings.Count(r.stderr, "\n") == 1 && strings.Contains(r.stderr, "is not one for a sender") {
		r.stderr = "" // nor is the tests' one
	}
	if r.code != exitOK || cmd.Name() != "migrate" && r.stderr != "" || cmd.Name() != "tail" && ctx == t.Context() && r.stdout == "" {
		t.Errorf("fencepost %s: code %d\n%s%s", line, r.code, r.stdout, r.stderr)
	}
}

// allCommands are those below the root.
func allCommands() (all []*cobra.Command) {
	root := newRoot()
	walk(root, func(cmd *cobra.Command) {
		if cmd != root {
			all = append(all, cmd)
		}
	})
	return all
}

// newExampleFixture adds to the fixture what the examples speak of: a dead mail, a blocked order key, a further parked message, a pause of
// everything; all of it old.
func newExampleFixture(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	f.batches(t)
	f.ripen(t)
	return f
}

func (f fixture) ripen(t *testing.T) {
	t.Helper()
	f.block(t, "customer-7")
	f.enqueue(t, outbox.Effect{Kind: "mail", Key: "mail-7", Tenant: "other"}, outbox.Effect{Kind: "park", Key: "park-7"})
	f.sql(t, "UPDATE outbox.queue SET state = 1 WHERE kind = 'park'")
	f.sql(t, `INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays, settled_at)
		SELECT message_id, 'dead', 'attempts', 'no answer', 12, 12, 0, clock_timestamp() FROM outbox.queue WHERE tenant = 'other'`)
	f.sql(t, "DELETE FROM outbox.queue WHERE tenant = 'other'")
	if _, err := f.box.Pause(t.Context(), outbox.AllTenants, outbox.Everything, outbox.PauseLeasing, operator); err != nil {
		t.Fatal(err)
	}
	f.tell(t)
	if _, _, err := f.box.AddCredential(t.Context(), "worker-1", []outbox.Permit{{Consumer: outbox.Any, Tenant: outbox.Any}}, operator); err != nil {
		t.Fatal(err)
	}
	f.sql(t, "UPDATE outbox.message SET created_at = created_at - interval '1 d'")
	f.sql(t, "UPDATE outbox.settlement SET settled_at = settled_at - interval '1 d'")
}

// The script of each shell completes commands, flags, and the words a flag takes.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := succeed(t, "completion", shell); !strings.Contains(script, "fencepost") {
			t.Errorf("%s: %.100s", shell, script)
		}
	}
	for want, args := range map[string][]string{
		"replay":        {"__complete", "rep"},
		"--reason":      {"__complete", "replay", "--rea"},
		"dead-blocking": {"__complete", "resolve", "--as", "dead-"},
		"exhausted":     {"__complete", "replay", "--cause", ""},
		"parked":        {"__complete", "list", "--state", ""},
		"fish":          {"__complete", "completion", "f"},
		":4\n":          {"__complete", "show", ""},    // no files
		":0\n":          {"__complete", "enqueue", ""}, // files
		":0":            {"__complete", "work", "--exec", ""},
		"revoke":        {"__complete", "worker", "re"},
		"rejected":      {"__complete", "batch", "rows", "--fate", ""},
		"--pass-env":    {"__complete", "work", "--pass"},
	} {
		if r := command(t, args...); !strings.Contains(r.stdout, want) {
			t.Errorf("%v: no %q in %s", args, want, r.stdout)
		}
	}
	for _, args := range [][]string{{"work", "--credential-file"}, {"worker", "add", "w", "--out"}} {
		if r := command(t, slices.Concat([]string{"__complete"}, args, []string{""})...); r.stdout != ":0\n" {
			t.Errorf("%v takes no files: %s", args, r.stdout)
		}
	}
}

// A file that cannot be read is no reason to repeat what may be a connection string.
func TestEnqueueOfNoFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), canary)
	if _, err := os.Stat(missing); err == nil {
		t.Fatal("it is there")
	}
	r := command(t, "enqueue", missing, "--dsn", "postgres://nobody@127.0.0.1:1/none")
	if r.code != exitUsage || r.stderr != "fencepost: cannot open the file: no such file or directory\n" {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}
