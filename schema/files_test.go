package schema_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/schemaname"
	"github.com/fencepost-go/fencepost/schema"
)

var (
	comments  = regexp.MustCompile(`--[^\n]*`)
	roleNames = regexp.MustCompile(`["']outbox_[a-z]+["']`) // have a prefix of their own
)

// After the swap the default name must be gone from every statement: in a literal other than nextval's argument, or where
// the swap does not look, it would reach another installation's tables.
func TestSwapReachesEveryName(t *testing.T) {
	t.Parallel()
	var checked int
	for folder, tree := range map[string]fs.FS{"schema": schema.FS, "queries": os.DirFS("../queries")} {
		err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".sql" || strings.Contains(name, "sqlite/") { // where no other name is taken
				return err
			}
			content, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			checked++
			swapped := comments.ReplaceAllString(roleNames.ReplaceAllString(schemaname.Swap(string(content), "other"), ""), "")
			for number, line := range strings.Split(swapped, "\n") {
				if strings.Contains(line, schemaname.Default) {
					t.Errorf("%s/%s:%d: %s", folder, name, number+1, strings.TrimSpace(line))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 10 {
		t.Errorf("found only %d files", checked)
	}
}

var (
	fileName = regexp.MustCompile(`^\d{5}_[a-z0-9_]+\.sql$`)
	header   = regexp.MustCompile(`^(?:-- .*\n)*-- Locks: .*\. Old and new binaries: `)

	byTheHundred = regexp.MustCompile(`^\d{3}00_`)
	takesAway    = regexp.MustCompile(`\b(DROP|RENAME|ALTER COLUMN|SET NOT NULL|ADD (?:CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY|EXCLUDE)|TRUNCATE|DELETE|UPDATE|BEFORE|INSTEAD OF|OR REPLACE)\b|ADD COLUMN [^,;]*NOT NULL *[,;]`)
)

var (
	bodies   = regexp.MustCompile(`(?s)AS \$\$.*?\$\$|\nBEGIN\n.*?\nEND;`) // of functions, and of triggers of SQLite
	triggers = regexp.MustCompile(`(CREATE TRIGGER \w+ AFTER) (?:DELETE|UPDATE)`)
)

// statements is what a migration does, without what it makes others do later: bodies, and the events that triggers come after. A trigger that
// comes before may refuse or change what an older program writes.
func statements(text string) string {
	return triggers.ReplaceAllString(bodies.ReplaceAllString(comments.ReplaceAllString(text, ""), ""), "$1")
}

const limited = "\nSET LOCAL lock_timeout = '5s';\n"

func TestWhatTakesAway(t *testing.T) {
	t.Parallel()
	for text, takes := range map[string]bool{
		"CREATE TRIGGER a AFTER DELETE ON outbox.queue EXECUTE FUNCTION outbox.f();":            false,
		"CREATE TRIGGER a AFTER UPDATE OF b ON outbox.queue EXECUTE FUNCTION outbox.f();":       false,
		"CREATE TRIGGER a BEFORE INSERT ON outbox.queue EXECUTE FUNCTION outbox.f();":           true,
		"CREATE TRIGGER a AFTER DELETE ON b\nBEGIN\n    UPDATE b SET c = 1;\nEND;\nSELECT 1;":   false,
		"CREATE FUNCTION outbox.f() RETURNS trigger AS $$\nBEGIN\n    DELETE FROM b;\nEND\n$$;": false,
		"CREATE FUNCTION a AS $$ SELECT 1 $$; DELETE FROM b; CREATE FUNCTION c AS $$ $$;":       true,
		"CREATE OR REPLACE FUNCTION a AS $$ SELECT 1 $$;":                                       true,
		"CREATE TRIGGER a AFTER DELETE ON b\nBEGIN\n    SELECT 1;\nEND;\nDROP TABLE c;":         true,
		"UPDATE outbox.queue SET a = 1; -- AFTER DELETE":                                        true,
	} {
		if got := takesAway.MatchString(statements(text)); got != takes {
			t.Errorf("%q takes away: %t", text, got)
		}
	}
}

// What goose accepts is more than what keeps a migration from leaving half a step or stopping all traffic.
func TestMigrationsKeepTheRules(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(schema.FS, "[ps]*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(schema.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		if !fileName.MatchString(path.Base(file)) {
			t.Errorf("%s is not named by five digits and lower-case words", file)
		}
		if !header.MatchString(text) {
			t.Errorf("%s does not begin with the locks it takes and whether old and new binaries run beside it", file)
		}
		top, up, ok := strings.Cut(text, "-- +goose Up\n")
		up, down, ok2 := strings.Cut(up, "-- +goose Down\n")
		if !ok || !ok2 || strings.TrimSpace(comments.ReplaceAllString(top, "")) != "" {
			t.Errorf("%s is not comments, Up and Down in this order", file)
		}
		if found := takesAway.FindString(statements(up)); found != "" && !byTheHundred.MatchString(path.Base(file)) {
			t.Errorf("%s has %s, which older programs may not stand: such a migration takes the next round hundred", file, found)
		}
		forbidden := []string{"IF NOT EXISTS", "IF EXISTS", "CONCURRENTLY", "ENVSUB", "NO TRANSACTION"}
		if within, _, _ := strings.Cut(file, "/"); within == "sqlite" {
			// It is the caller's transaction.
			if !strings.Contains(top, "-- +goose NO TRANSACTION\n") {
				t.Errorf("%s begins a transaction within that of Up", file)
			}
			up, down, forbidden = limited+up, limited+down, append(forbidden[:4], "BEGIN", "COMMIT", "PRAGMA")
		}
		for direction, statements := range map[string]string{"up": up, "down": down} {
			if !strings.HasPrefix(statements, limited) {
				t.Errorf("%s: %s does not begin by limiting its waits", file, direction)
			}
		}
		for _, word := range forbidden {
			if strings.Contains(bodies.ReplaceAllString(text, ""), word) {
				t.Errorf("%s has %s", file, word)
			}
		}
	}
	if len(files) != 2*int(schema.Newest()) {
		t.Errorf("%d migrations for two dialects, and the newest is %d", len(files), schema.Newest())
	}
}
