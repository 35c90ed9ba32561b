package rules_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

var freeze = flag.Bool("freeze", false, "record the migrations as they are now")

// A released migration has run on databases that nobody can call back. Any change of one must therefore be meant, and
// show in the diff as a changed checksum.
func TestMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	const record = root + "/schema/checksums.txt" // for sha256sum -c
	tree := os.DirFS(root + "/schema")
	names, err := fs.Glob(tree, "*/[0-9]*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("found no migrations: %v", err)
	}
	var sums strings.Builder
	for _, name := range names {
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	if *freeze {
		if err := os.WriteFile(record, []byte(sums.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sums.String(), string(recorded); got != want {
		t.Errorf("The migrations are not the recorded ones. A released migration must never change: put it back and add "+
			"a new one. A new or unreleased one is recorded by make freeze.\nnow:\n%s\nrecorded:\n%s", got, want)
	}
}
