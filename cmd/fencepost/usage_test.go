package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// B24: what is wrong with the command line is said in one line that names it, with exit code 2, before anything is done.
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
		{[]string{"demo"}, "the demo needs --postgres"},
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
	for _, cmd := range append(newRoot().Commands(), newRoot()) {
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
	for _, cmd := range append(newRoot().Commands(), newRoot()) {
		documented += strings.Count(cmd.Long, dsnVariable+" is used")
	}
	if documented != 1 {
		t.Errorf("%s is documented %d times", dsnVariable, documented)
	}
}
