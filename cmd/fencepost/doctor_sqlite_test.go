package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// On a file nothing is said of what only PostgreSQL has.
func TestDoctorOnSQLite(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	d := doctor{box: f.box, store: f.box.Store(), step: 1000}
	if err := d.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	onSQLite(&d)
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.Flags().Bool("json", false, "")
	cmd.SetOut(&out)
	if err := d.examine(t.Context(), cmd, "outbox"); err != nil {
		t.Errorf("%v in\n%s", err, &out)
	}
	if err := d.report(cmd, "outbox"); err != nil {
		t.Error(err)
	}
	for _, word := range []string{"PostgreSQL", "autovacuum", "snapshot", "dead rows", "fsync", "outbox.message", "superuser", "database role"} {
		if strings.Contains(out.String(), word) {
			t.Errorf("%s in\n%s", word, &out)
		}
	}
	for _, words := range []string{"schema outbox, SQLite 3.51.0", "outbox_message", "journal_mode wal, synchronous full", "the right to write the file"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("no %s in\n%s", words, &out)
		}
	}
}
