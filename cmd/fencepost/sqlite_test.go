package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/db"
)

// newExampleFile is newExampleFixture on a file of SQLite.
func newExampleFile(t *testing.T) fixture {
	t.Helper()
	f := openFileFixture(t)
	f.fill(t)
	f.batches(t)
	f.ripen(t)
	return f
}

// Who looks at a file is told which.
func TestReportsNameTheFile(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	path := strings.TrimPrefix(f.dsn, filePrefix)
	for _, args := range [][]string{{"status"}, {"doctor"}, {"doctor", "--report"}, {"status", "--json"}, {"doctor", "--json"}} {
		if out := succeed(t, append(args, "--dsn", f.dsn)...); !strings.Contains(out, path) {
			t.Errorf("%v does not name %s:\n%s", args, path, out)
		}
	}
}

// Every command works on a file of SQLite as its examples say.
func TestExamplesOnSQLite(t *testing.T) {
	t.Parallel()
	f := newExampleFile(t)
	f.on.close()
	content, err := os.ReadFile(strings.TrimPrefix(f.dsn, filePrefix))
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range allCommands() {
		if cmd.Flags().Lookup("dsn") == nil || cmd.Name() == "demo" {
			continue
		}
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			t.Parallel()
			dsn := filePrefix + inputFile(t, string(content))
			for _, line := range exampleLine.FindAllStringSubmatch(cmd.Example, -1) {
				tryExample(t, cmd, dsn, line[1], line[2])
			}
		})
	}
}

func TestMigrateSQLite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%20.db")
	dsn := filePrefix + path
	// Only migrate makes the file.
	for _, args := range [][]string{{"status"}, {"doctor"}, {"migrate", "--status"}, {"migrate", "--down", "--to", "0", "--yes"}} {
		r := command(t, append(args, "--dsn", dsn)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, "file "+path+" does not exist: correct the path, or make the file with fencepost migrate --dsn sqlite:"+path) {
			t.Errorf("%v without a file: code %d, %s", args, r.code, r.stderr)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("the file was made: ", err)
	}
	for range 2 {
		up := command(t, "migrate", "--dsn", dsn)
		if up.code != exitOK || !strings.HasPrefix(up.stdout, "schema outbox has version ") {
			t.Fatalf("code %d, %s%s", up.code, up.stdout, up.stderr)
		}
	}
	if r := decode[migrationReport](t, "migrate", "--status", "--dsn", dsn); r.Version != db.NewestSchema || r.Migrations[0].AppliedAt == nil {
		t.Errorf("after up: %+v", r)
	}
	succeed(t, "status", "--dsn", dsn)
	if script := succeed(t, "migrate", "--print", "--dsn", filePrefix+"none.db"); !strings.Contains(script, "CREATE TABLE outbox_message") {
		t.Errorf("the script begins %.200s", script)
	}
	if r := command(t, "migrate", "--down", "--to", "0", "--yes", "--dsn", dsn); r.code != exitOK {
		t.Errorf("down: %s", r.stderr)
	}
	missing := command(t, "status", "--dsn", dsn)
	if missing.code != exitFailed || !strings.Contains(missing.stderr, "fencepost migrate") {
		t.Errorf("without tables: code %d, %s", missing.code, missing.stderr)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("beside the file: %v, %v", files, err)
	}
}

func TestBadSQLitePaths(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), canary)
	for want, args := range map[string][]string{
		"takes a path after sqlite:":          {"status", "--dsn", "sqlite:"},
		"takes a path after sqlite:, ":        {"status", "--dsn", "sqlite://" + canary + "/shop.db"},
		"takes a path after sqlite:, as":      {"status", "--dsn", "sqlite::memory:"},
		"takes a path after sqlite:, as in":   {"migrate", "--dsn", "sqlite:file:" + canary},
		"--schema goes with PostgreSQL only":  {"status", "--dsn", "sqlite:shop.db", "--schema", "other"},
		"takes a path after sqlite:, as in s": {"migrate", "--dsn", "sqlite:postgres://user:" + canary + "@host/shop"},
		"a path and nothing else":             {"migrate", "--dsn", "sqlite:shop.db?password=" + canary},
		"a path and nothing else, as":         {"status", "--dsn", "sqlite:sqlite:" + canary},
		"file does not exist: correct the":    {"status", "--dsn", filePrefix + folder + "@host"},
		"folder of the database's file does":  {"migrate", "--dsn", filePrefix + filepath.Join(folder, "a=b.db")},
	} {
		r := command(t, args...)
		if r.code != exitUsage || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, canary) || r.stdout != "" {
			t.Errorf("%v: code %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	folder = filepath.Join(t.TempDir(), "missing")
	r := command(t, "migrate", "--dsn", filePrefix+filepath.Join(folder, "shop.db"))
	if want := "file " + filepath.Join(folder, "shop.db") + " does not exist: make it"; r.code != exitUsage || !strings.Contains(r.stderr, want) {
		t.Errorf("no folder: code %d, %s", r.code, r.stderr)
	}
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := command(t, "status", "--dsn", filePrefix+text); r.code != exitFailed || !strings.Contains(r.stderr, "not a database") {
		t.Errorf("another file: code %d, %s", r.code, r.stderr)
	}
}

func TestSQLiteByEnvironment(t *testing.T) {
	f := openFileFixture(t)
	t.Setenv(dsnVariable, f.dsn)
	succeed(t, "status")
	if r := command(t, "grants"); r.code != exitUsage || !strings.Contains(r.stderr, "no roles") {
		t.Errorf("grants: code %d, %s", r.code, r.stderr)
	}
}

// A list of nothing says of what there is nothing, and where the settled are.
func TestListOfNothing(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	if out := succeed(t, "list", "--dsn", f.dsn); !strings.HasPrefix(out, "no open messages; --state delivered, dead") {
		t.Error(out)
	}
	if out := succeed(t, "list", "--state", "parked", "--dsn", f.dsn); out != "no parked messages\n" {
		t.Error(out)
	}
}
