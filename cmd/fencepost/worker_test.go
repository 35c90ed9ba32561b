package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

var credentials = regexp.MustCompile(`fpw_[0-9a-f]{64}`)

// Shows: S4.21
func TestWorker(t *testing.T) { onEach(t, testWorker) }

func testWorker(t *testing.T, f fixture) {
	s := transcript{t: t, dsn: f.dsn}
	s.run("worker", "list")
	s.run("worker", "list", "--json")
	printed := s.run("worker", "add", "warehouse-1", "--consumer", "shop", "--reason", "new host", "--actor", "ann").stdout
	s.run("worker", "add", "acme-1", "--consumer", "shop", "--consumer", "bank", "--tenant", "acme", "--tenant", "", "--reason", "asked by acme", "--actor", "ann", "--json")
	s.run("worker", "add", "warehouse-1", "--consumer", "*", "--reason", "another", "--actor", "ann")
	s.run("worker", "add", "two words", "--consumer", "shop", "--reason", "r", "--actor", "ann")
	s.run("worker", "add", "w", "--consumer", "", "--reason", "r", "--actor", "ann")
	s.run("worker", "revoke", "nobody", "--reason", "its host is gone", "--actor", "ben")
	s.run("worker", "revoke", "acme-1", "--reason", "its host is gone", "--actor", "ben")
	s.run("worker", "revoke", "acme-1", "--reason", "its host is gone", "--actor", "ben", "--json")
	s.run("worker", "revoke", "warehouse-1", "--reason", "replaced", "--actor", "ben", "--json")
	s.run("worker", "add", "acme-1", "--consumer", "shop", "--reason", "again", "--actor", "ann")
	s.run("worker", "list")
	s.run("worker", "list", "--json")
	golden(t, "worker", credentials.ReplaceAllString(s.String(), "fpw_SECRET"))
	if all := credentials.FindAllString(s.String(), -1); len(all) != 2 || all[0] == all[1] {
		t.Errorf("printed %v", all)
	}
	if credential, err := outbox.ParseCredential(strings.TrimSuffix(printed, "\n")); err != nil || credential.Name() != "warehouse-1" {
		t.Errorf("printed %q: %v", printed, err)
	}
}

// A credential goes into a new file of one's own, or is not made: what is there already stays, and nothing is left of what failed.
func TestWorkerOut(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	out := filepath.Join(t.TempDir(), "w.credential")
	add := func(name, out string) result {
		return command(t, "worker", "add", name, "--consumer", "shop", "--reason", "r", "--out", out, "--dsn", f.dsn)
	}
	if r := add("w", out); r.code != exitOK || credentials.MatchString(r.stdout+r.stderr) {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	content, err := os.ReadFile(out)
	info, statErr := os.Stat(out)
	if err != nil || statErr != nil || info.Mode().Perm()&0o077 != 0 {
		t.Fatal(err, statErr, info.Mode())
	}
	if credential, err := outbox.ParseCredential(strings.TrimSuffix(string(content), "\n")); err != nil || credential.Name() != "w" {
		t.Errorf("wrote %v, %v", credential, err)
	}
	if r := add("x", out); r.code != exitUsage || !strings.Contains(r.stderr, "cannot make the file of --out: file exists") {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	if again, err := os.ReadFile(out); err != nil || string(again) != string(content) {
		t.Error("the file was changed")
	}
	other := out + ".2"
	if r := add("w", other); r.code != exitNotDone {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a file is left: %v", err)
	}
	if r := add("x", filepath.Join(t.TempDir(), canary, "w")); r.code != exitUsage || strings.Contains(r.stderr, canary) {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	if names := f.rows(t, "SELECT name FROM outbox.credential"); names != "w" {
		t.Errorf("let in: %s", names)
	}
}
