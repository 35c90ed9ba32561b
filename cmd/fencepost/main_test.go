package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// commandVariable tells the test binary to be the command.
const commandVariable = "FENCEPOST_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		return
	}
	os.Unsetenv(dsnVariable)
	pgtest.Main(m)
}

// result is what a command printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func command(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
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
	versions = regexp.MustCompile(`PostgreSQL [^\n]+`)
	rowCount = regexp.MustCompile(`dead rows .*`) // the server's estimates, which come late
)

// golden compares output with a file, but for what differs from run to run.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = instants.ReplaceAllStringFunc(got, func(at string) string { return strings.Repeat("T", len("2026-01-01 00:00:00Z")) })
	got = ages.ReplaceAllString(got, "AGE")
	got = versions.ReplaceAllString(got, "PostgreSQL VERSION")
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
