package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// commandVariable tells the test binary to be the command.
const commandVariable = "FENCEPOST_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" || len(os.Args) == 2 && os.Args[1] == guardCommand { // whose environment is empty
		main()
		return
	}
	os.Unsetenv(dsnVariable)
	progressEvery = time.Hour
	pgtest.Main(m)
}

// result is what a command printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func command(t *testing.T, args ...string) result {
	t.Helper()
	return commandWith(t.Context(), strings.NewReader(""), args...)
}

func commandWith(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, stdin, &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

// A transcript is a session on one database, for a golden.
type transcript struct {
	t   *testing.T
	dsn string
	strings.Builder
}

func (s *transcript) run(args ...string) result {
	s.t.Helper()
	r := command(s.t, append(args, "--dsn", s.dsn)...)
	line := "$ fencepost"
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			arg = strconv.Quote(arg)
		}
		line += " " + arg
	}
	fmt.Fprintf(s, "%s\n%s%s", line, r.stdout, r.stderr)
	if r.code != exitOK {
		fmt.Fprintf(s, "exit code %d\n", r.code)
	}
	s.WriteByte('\n')
	return r
}

// succeed runs a command that must succeed and gives its output.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := command(t, args...)
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("fencepost %v: code %d\n%s", args, r.code, r.stderr)
	}
	return r.stdout
}

// decode runs a command with --json and decodes its document, which must hold no field that T lacks.
func decode[T any](t *testing.T, args ...string) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(strings.NewReader(succeed(t, append(args, "--json")...)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("fencepost %v: %v", args, err)
	}
	return value
}

var (
	update = flag.Bool("update", false, "write the golden files")

	instants = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z`)
	ages     = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b`)
	versions = regexp.MustCompile(`(PostgreSQL|SQLite) [^\n]+`)
	rowCount = regexp.MustCompile(`dead rows .*`) // the server's estimates, which come late
)

// golden compares output with a file, but for what differs from run to run.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = instants.ReplaceAllStringFunc(got, func(at string) string { return strings.Repeat("T", len("2026-01-01 00:00:00Z")) })
	got = ages.ReplaceAllString(got, "AGE")
	got = versions.ReplaceAllString(got, "$1 VERSION")
	got = rowCount.ReplaceAllString(got, "dead rows COUNT")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-update writes it):\ngot\n%s\nwant\n%s", file, got, want)
	}
}
