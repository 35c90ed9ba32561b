package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// What is wrong with the command line is said in one line that names it, with exit code 2, before anything is done.
func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	const unused = "--dsn=postgres://nobody@127.0.0.1:1/none" // a command that went on would fail with code 1
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"stats"}, "unknown command stats; did you mean status?"},
		{[]string{"frobnicate"}, "unknown command frobnicate"},
		{[]string{"help", "frobnicate"}, "unknown command frobnicate"},
		{[]string{"status"}, "no database: give --dsn or set FENCEPOST_DSN"},
		{[]string{"status", "--dsn", "nonsense"}, "--dsn is no connection string"},
		{[]string{"status", unused, "--frob"}, "unknown flag --frob; see fencepost status --help"},
		{[]string{"status", unused, "extra"}, "fencepost status takes no arguments"},
		{[]string{"status", unused, "--timeout"}, "--timeout needs a value"},
		{[]string{"status", unused, "--timeout", "0"}, "--timeout must be between 1ms and 1h0m0s"},
		{[]string{"status", unused, "--timeout", "0s"}, "--timeout must be between"},
		{[]string{"status", unused, "--timeout", "-1s"}, "--timeout must be between"},
		{[]string{"status", unused, "--timeout", "1ns"}, "--timeout must be between"},
		{[]string{"status", unused, "--timeout", "300000h"}, "--timeout must be between"},
		{[]string{"status", unused, "--timeout", "ten"}, "--timeout is not a duration"},
		{[]string{"status", unused, "--schema", ""}, "--schema must be"},
		{[]string{"status", unused, "--schema", `out"box`}, "--schema must be"},
		{[]string{"status", unused, "--schema", "pg_catalog"}, "--schema must be"},
		{[]string{"status", unused, "--json=perhaps"}, "--json has a value that is no bool"},
		{[]string{"list", unused, "--limit", "0"}, "--limit must be between 1 and 1000"},
		{[]string{"list", unused, "--limit", "-1"}, "--limit must be between 1 and 1000"},
		{[]string{"list", unused, "--limit", "1001"}, "--limit must be between 1 and 1000"},
		{[]string{"list", unused, "--limit", "9999999999999999999"}, "--limit is not a whole number"},
		{[]string{"list", unused, "--state", "lost"}, "--state must be one of open, pending"},
		{[]string{"list", unused, "--after", "x"}, "--after is no place"},
		{[]string{"list", unused, "--after", "-4"}, "--after is no place"},
		{[]string{"list", unused, "--after", "2026-01-01T00:00:00Z/4"}, "--after is no place"},
		{[]string{"list", unused, "--state", "dead", "--after", "4"}, "--after is no place"},
		{[]string{"list", unused, "--state", "dead", "--after", "today/4"}, "--after is no place"},
		{[]string{"show", unused}, "show takes the id of one message"},
		{[]string{"show", unused, "1", "2"}, "show takes the id of one message"},
		{[]string{"show", unused, "0"}, "the id of a message is a whole number above 0"},
		{[]string{"show", unused, "9223372036854775808"}, "the id of a message is a whole number above 0"},
		{[]string{"retries", unused, "1", "--jitter", "0"}, "--jitter must be between 1 and 100, or the word none"},
		{[]string{"retries", unused}, "retries takes the id of one message"},
		{[]string{"replay", unused, "--reason", "r"}, "give ids, a filter"},
		{[]string{"replay", unused, "five", "--reason", "r"}, "the id of a message is a whole number above 0"},
		{[]string{"replay", unused, "5"}, "--reason is required"},
		{[]string{"replay", unused, "--all", "--reason", "r"}, "add --yes"},
		{[]string{"replay", unused, "--all", "--yes", "--reason", "r", "--after", "5"}, "--after is no place"},
		{[]string{"cancel", unused, "--all", "--yes", "--reason", "r", "--after", "2026-01-31T10:15:00Z/5"}, "--after is no place"},
		{[]string{"resolve", unused, "5", "--reason", "r"}, "--as is required"},
		{[]string{"pause", unused, "--reason", "r"}, "give --consumer, --target, --kind or --tenant, or --all"},
		{[]string{"pause", unused, "--reason", "r", "--kind", "*"}, "give --consumer"},
		{[]string{"pause", unused, "--reason", "r", "--kind", "mail", "--all"}, "exclude each other"},
		{[]string{"resume", unused, "--reason", "r"}, "give --consumer"},
		{[]string{"release", unused, "--reason", "r"}, "--worker is required"},
		{[]string{"unblock", unused, "--reason", "r", "--consumer", "c", "--target", "t"}, "are required"},
		{[]string{"enqueue", unused, "a", "b"}, "enqueue takes one file at most"},
		{[]string{"tail", unused, "--state", "lost"}, "--state must be one of open, delivered"},
		{[]string{"events", "tial"}, "unknown command; see fencepost events --help"},
		{[]string{"events", "tail", unused, "--after", "x"}, "--after is no cursor"},
		{[]string{"events", "tail", unused, "--limit", "0"}, "--limit must be between 1 and"},
		{[]string{"events", "show", unused}, "show takes the id of one event"},
		{[]string{"events", "readers", unused, "--remove", "search"}, "add --yes"},
		{[]string{"worker", "add", unused, "--consumer", "c", "--reason", "r"}, "add takes the name of one worker"},
		{[]string{"worker", "add", unused, "w", "--reason", "r"}, "--consumer is required"},
		{[]string{"worker", "add", unused, "w", "--consumer", "c"}, "--reason is required"},
		{[]string{"worker", "revoke", unused, "--reason", "r"}, "revoke takes the name of one worker"},
		{[]string{"worker", "rm"}, "unknown command; see fencepost worker --help"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--credential-file", "no-such-file", "--exec", "true"}, "cannot read the file of --credential-file: no such file or directory"},
		{[]string{"batch", "crate"}, "unknown command; see fencepost batch --help"},
		{[]string{"batch", "create", unused, "a", "b"}, "create takes one file at most"},
		{[]string{"batch", "create", unused, "--consumer", "c", "--target", "t", "--kind", "k"}, "--consumer, --target, --kind and --key are required"},
		{[]string{"batch", "create", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--key", "b", "--priority", "40000"}, "--priority must be between"},
		{[]string{"batch", "create", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--key", "b", "--on-complete", "[]"}, "--on-complete is no JSON object"},
		{[]string{"batch", "show", unused}, "show takes the id of one batch"},
		{[]string{"batch", "show", unused, "0"}, "the id of a batch is a whole number above 0"},
		{[]string{"batch", "rows", unused, "1", "--fate", "lost"}, "--fate must be one of open, delivered"},
		{[]string{"batch", "rows", unused, "1", "--after", "0"}, "--after must be between 1 and"},
		{[]string{"batch", "watch", unused, "1", "--every", "10ms"}, "--every must be between"},
		{[]string{"batch", "cancel", unused, "1", "--reason", "r"}, "add --yes"},
		{[]string{"batch", "rerun", unused, "1", "--yes"}, "--reason is required"},
		{[]string{"ledger", "show", unused, "charges"}, "show takes the scope and the key"},
		{[]string{"ledger", "show", unused, "charges", ""}, "KEY is blank"},
		{[]string{"events", "show", unused, strings.Repeat("x", 65)}, "EVENT-ID has 65 bytes, at most 64 are allowed"},
		{[]string{"purge", unused, "--yes", "--claims", "24h"}, "--claims must be at least as long as --dead"},
		{[]string{"purge", unused, "--yes", "--events", "24h", "--tenant", "acme"}, "--events does not go with --tenant"},
		{[]string{"purge", unused}, "add --yes"},
		{[]string{"purge", unused, "--yes", "--delivered", "0"}, "--delivered must be between 1m0s and"},
		{[]string{"purge", unused, "--yes", "--dead", "-1h"}, "--dead must be between 1m0s and"},
		{[]string{"purge", unused, "--yes", "--audit", "59s"}, "--audit must be between 1m0s and"},
		{[]string{"purge", unused, "--yes", "--grace", "1ns"}, "--grace must be between 1m0s and"},
		{[]string{"purge", unused, "--yes", "--expired", "never"}, "--expired is not a duration such as 500ms, 10s or 1m30s, or the word none"},
		{[]string{"work", unused, "--target", "t", "--kind", "k", "--exec", "true"}, "--consumer, --target and --kind are required"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--exec", "true"}, "--consumer, --target and --kind are required"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "true"}, "give one of --exec, --post"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--post", "https://a.example", "--exec", "true"}, "give one of --exec, --post"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--post", "https://a.example", "b"}, "--post takes no arguments"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--post", "https://a.example", "--grace", "1s"}, "--grace goes with --exec"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--https-only", "--exec", "true"}, "--https-only goes with --post"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--post", "https://a.example"}, "--post signs what it sends"},
		{[]string{"work", unused, "--allow", "localhost"}, "--allow is neither an address nor a network such as 10.0.0.0/8"},
		{[]string{"work", unused, "--status", "404=fine"}, "--status must end in = and one of delivered, moot, permanent, retry, unavailable, unknown"},
		{[]string{"work", unused, "--status", "42=retry"}, "--status must begin with a status or the first digit of a class"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--exec"}, "--exec needs a command after it"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--exec", "/no/such/command"}, "the command of --exec cannot be run: no such file"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--exec", "no-such-command"}, "cannot be run: executable file not found"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--exec", "/"}, "the command of --exec cannot be run"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--unknown-on-timeout", "--exec", "true"}, "--unknown-on-timeout needs --timeout"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--pass-env", "FENCEPOST_DSN", "--exec", "true"}, "--pass-env takes none of"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--grace", "11s", "--exec", "true"}, "Grace of 11s must not exceed a third"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--slots", "1001", "--exec", "true"}, "--slots must be between 1 and 1000"},
		{[]string{"work", unused, "--consumer", "*", "--target", "t", "--kind", "k", "--exec", "true"}, "Consumer is the wildcard"},
		{[]string{"work", unused, "--consumer", "c", "--target", "t", "--kind", "k", "--drain", "1m", "--exec", "true"}, "Drain of 1m0s must not exceed"},
		{[]string{"completion"}, "completion takes one of bash"},
		{[]string{"completion", "bash", "--json"}, "prints a script, which has no JSON form"},
		{[]string{"grants", "--json"}, "prints a script, which has no JSON form"},
		{[]string{"migrate", "--print", "--json"}, "prints a script, which has no JSON form"},
		{[]string{"doctor", unused, "--kinds", ""}, "--kinds takes names"},
		{[]string{"doctor", unused, "--kinds", "a,,b"}, "--kinds takes names"},
		{[]string{"doctor", unused, "--report", "--full"}, "--report goes with neither"},
		{[]string{"doctor", unused, "--timeout", "0"}, "--timeout must be between"},
		{[]string{"grants", "--role-prefix", "pg_"}, "--role-prefix must be letters"},
		{[]string{"grants", "--role-prefix", `a"`}, "--role-prefix must be letters"},
		{[]string{"grants", "--schema", ""}, "--schema must be"},
		{[]string{"demo", "--dsn", "sqlite:shop.db"}, "--dsn goes with --postgres"},
		{[]string{"demo", "--postgres", "--effects", "0"}, "--effects must be between 100 and"},
		{[]string{"demo", "--postgres", "--effects", "-1"}, "--effects must be between 100 and"},
		{[]string{"demo", "--postgres", "--seed", "0"}, "--seed must be between 1 and"},
		{[]string{"demo", "--postgres", "--dsn", "nonsense"}, "--dsn is no connection string"},
		{[]string{"migrate", unused, "--down"}, "--down needs --to"},
		{[]string{"migrate", unused, "--down", "--to", "0"}, "add --yes"},
		{[]string{"migrate", unused, "--down", "--to", "-1", "--yes"}, "--to must be between 0 and"},
		{[]string{"migrate", unused, "--to", "0"}, "--to goes with --down"},
		{[]string{"migrate", unused, "--down", "--status"}, "exclude each other"},
		{[]string{"migrate", unused, "--lock-timeout", "0"}, "--lock-timeout must be between"},
		{[]string{"migrate", unused, "--lock-timeout", "-5s"}, "--lock-timeout must be between"},
	} {
		r := command(t, test.args...)
		if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, test.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("fencepost %q: code %d, %q\nwant %q", test.args, r.code, r.stderr+r.stdout, test.want)
		}
	}
}

// What each command that reaches a database needs to be complete.
var completeArguments = map[string][]string{
	"migrate": nil, "purge": {"--yes"}, "status": nil, "list": nil, "tail": nil, "doctor": nil, "demo": {"--postgres"},
	"work": {"--consumer", "shop", "--target", "warehouse", "--kind", "none", "--once", "--exec", "true"},
	"show": {"5"}, "retries": {"1"}, "enqueue": {os.DevNull},
	"replay": {"5", "--reason", "r"}, "resolve": {"6", "--as", "dead", "--reason", "r"}, "cancel": {"1", "--reason", "r"},
	"pause": {"--all", "--reason", "r"}, "resume": {"--kind", "mail", "--reason", "r"}, "release": {"--worker", "worker-1", "--reason", "r"},
	"unblock":     {"--consumer", "shop", "--target", "warehouse", "--order-key", "customer-7", "--reason", "r"},
	"events tail": {"--limit", "1"}, "events show": {"order-77-paid"}, "events readers": nil, "events backfill": nil, "ledger show": {"charges", "order-77"},
	"worker add": {"mailer", "--consumer", "shop", "--reason", "r"}, "worker list": nil, "worker revoke": {"worker-1", "--reason", "r"},
	"batch create": {os.DevNull, "--consumer", "c", "--target", "t", "--kind", "k", "--key", "b"}, "batch list": nil, "batch show": {"1"}, "batch rows": {"1"},
	"batch watch": {"1"}, "batch cancel": {"1", "--yes", "--reason", "r"}, "batch rerun": {"1", "--yes", "--reason", "r"},
}

// B24, for every command that reaches a database: a bad connection string, an unknown flag, a number or a length of time of zero or less, a
// blank name, no reason. Exit code 2, one line, nothing done, nothing of a connection string repeated.
func TestB24NothingIsDone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.block(t, "customer-7")
	before := f.dump(t)
	for _, cmd := range allCommands() {
		if cmd.Flags().Lookup("dsn") == nil {
			continue
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "fencepost ")
		complete, ok := completeArguments[path]
		if !ok {
			t.Errorf("%s is not in the table", path)
		}
		refusedWith := func(complete []string, flags ...string) {
			t.Helper()
			args := slices.Concat(strings.Fields(path), flags, complete) // what follows a command of work's is the command's
			r := command(t, args...)
			if r.code != exitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || strings.Contains(r.stderr, canary) {
				t.Errorf("fencepost %q: code %d, %s%s", args, r.code, r.stdout, r.stderr)
			}
		}
		refused := func(flags ...string) {
			t.Helper()
			refusedWith(complete, flags...)
		}
		refused("--dsn", "postgres//user:"+canary+"@host/db")
		refused("--dsn", f.dsn, "--"+canary)
		refused("--dsn", f.dsn, "--timeout=postgres://user:"+canary+"@host/db")
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			bad := map[string][]string{
				"number": {"0", "-1", "1.5", ""}, "duration": {"0", "0s", "-1h", "1ns", "1", "10000000h", ""}, "text": {"", " "}, "word": {"", "none"},
			}[flag.Value.Type()]
			for _, value := range bad {
				if cmd.Name() == "migrate" && flag.Name == "to" && value == "0" {
					continue // the version that keeps nothing; it needs --down and --yes
				}
				refused("--dsn", f.dsn, "--"+flag.Name, value)
			}
		})
		if at := slices.Index(complete, "--reason"); at > 0 {
			refusedWith(complete[:at], "--dsn", f.dsn)
		}
	}
	if after := f.dump(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// Names are judged by the library, which also sends nothing.
func TestBadNames(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	for _, args := range [][]string{
		{"status", "--tenant", "*"},
		{"show", "1", "--tenant", " "},
		{"list", "--kind", "a\x00b"},
		{"list", "--consumer", strings.Repeat("x", 129)},
	} {
		if r := command(t, append(args, "--dsn", dsn)...); r.code != exitUsage || !strings.Contains(r.stderr, "invalid") {
			t.Errorf("fencepost %q: code %d, %q", args, r.code, r.stderr+r.stdout)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"help"}} {
		if out := succeed(t, args...); !strings.Contains(out, "Exit codes") {
			t.Errorf("%v: %s", args, out)
		}
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || !strings.Contains(cmd.Example, "fencepost") {
			t.Errorf("%s lacks a line of help or an example", cmd.CommandPath())
		}
		out := succeed(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		if !strings.Contains(out, cmd.Example) {
			t.Errorf("%s --help: %s", cmd.CommandPath(), out)
		}
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				visit(sub)
			}
		}
	}
	visit(newRoot())
}

// Every command line in the help and in the documentation is one that the command understands.
// Shows: S1.33
func TestDocumentedCommandLines(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, page := range append(pages, "../../README.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	for _, cmd := range append(allCommands(), newRoot()) {
		text.WriteString("\n" + cmd.Example)
	}
	lines := regexp.MustCompile(`(?m)(?:^ +(?:\w+=\S+ )?|`+"`"+`)fencepost ([^\n`+"`"+`|#]+)`).FindAllStringSubmatch(text.String(), -1)
	if len(lines) < 20 {
		t.Errorf("found only %d", len(lines))
	}
	for _, line := range lines {
		cmd, args, err := newRoot().Find(strings.Fields(line[1]))
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil && !cmd.HasParent() {
			err = errors.New("it names no command")
		}
		if err != nil {
			t.Errorf("fencepost %s: %v", line[1], err)
		}
	}
}

func TestDocumentedOnce(t *testing.T) {
	t.Parallel()
	documented := 0
	for _, cmd := range append(allCommands(), newRoot()) {
		documented += strings.Count(cmd.Long, dsnVariable+" is used")
	}
	if documented != 1 {
		t.Errorf("%s is documented %d times", dsnVariable, documented)
	}
}
