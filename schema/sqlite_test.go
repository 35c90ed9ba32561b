package schema_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/schema"
)

var file = schema.Config{Dialect: schema.SQLite}

// openFile returns the handle of a store on the file: one connection, whose transactions begin as writers.
func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	store, err := sqlitedb.Open(path, sqlitedb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store.DB()
}

// openPlain returns a handle on the file with SQLite's own settings: a rollback journal and no waiting.
func openPlain(t *testing.T, path string) *sql.DB {
	t.Helper()
	return connectWith(t, "sqlite", path)
}

func tempFile(t *testing.T) string { return filepath.Join(t.TempDir(), "shop.db") }

// dumpFile returns the SQL of everything in the file, and the versions.
func dumpFile(t *testing.T, db *sql.DB) string {
	t.Helper()
	objects := query[string](t, db, "SELECT coalesce(group_concat(o.sql, char(10)), '') FROM (SELECT sql FROM sqlite_schema WHERE sql <> '' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name) AS o")
	if objects == "" {
		return ""
	}
	return objects + "\n" + query[string](t, db, "SELECT group_concat(version_id) FROM (SELECT version_id FROM outbox_schema_version ORDER BY id)")
}

func TestSQLiteUpDownUp(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, string) *sql.DB{"store": openFile, "plain": openPlain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, tempFile(t))
			execute(t, db, "CREATE TABLE theirs (id INTEGER)")
			before := query[string](t, db, "SELECT group_concat(name) FROM sqlite_schema")
			up(t, db, file)
			first := dumpFile(t, db)
			up(t, db, file) // nothing to do
			if now := dumpFile(t, db); now != first {
				t.Errorf("changed by another up:\n%s", now)
			}
			for range 2 { // the second finds nothing
				if err := schema.Down(t.Context(), db, file, 0); err != nil {
					t.Fatal(err)
				}
				left := query[string](t, db, "SELECT group_concat(name) FROM sqlite_schema WHERE name <> 'sqlite_sequence'")
				if left != before {
					t.Errorf("left by down: %s", left)
				}
			}
			up(t, db, file)
			if err := schema.Down(t.Context(), db, file, schema.Newest()); err != nil {
				t.Fatal(err)
			}
			if again := dumpFile(t, db); again != first {
				t.Errorf("after up, down, up:\n%s\nwant\n%s", again, first)
			}
		})
	}
}

// A dialect that was forgotten is said to be, whoever opened the handle, and nothing is made.
func TestSQLiteForgotten(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, string) *sql.DB{"store": openFile, "plain": openPlain} {
		db := open(t, tempFile(t))
		_, status := schema.Status(t.Context(), db, schema.Config{})
		for _, err := range []error{status, schema.Up(t.Context(), db, schema.Config{}), schema.Down(t.Context(), db, schema.Config{}, 0)} {
			if err == nil || !strings.Contains(err.Error(), "set Dialect: schema.SQLite") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left := dumpFile(t, db); left != "" {
			t.Errorf("%s: created\n%s", name, left)
		}
	}
}

// Each version down leaves what the way up to it made, and the way up again makes the rest.
func TestSQLiteDownToVersion(t *testing.T) {
	t.Parallel()
	db := openFile(t, tempFile(t))
	up(t, db, file)
	newest := dumpFile(t, db)
	for version := schema.Newest(); version >= 0; version-- {
		if err := schema.Down(t.Context(), db, file, version); err != nil {
			t.Fatal(err)
		}
		want := ""
		if version > 0 {
			fresh := openFile(t, tempFile(t))
			if err := schema.UpFiles(t.Context(), fresh, file, upTo("sqlite", version)); err != nil {
				t.Fatal(err)
			}
			want = dumpFile(t, fresh)
		}
		if got := dumpFile(t, db); got != want {
			t.Errorf("down to version %d left\n%s\nwant\n%s", version, got, want)
		}
		migrations, err := schema.Status(t.Context(), db, file)
		if err != nil {
			t.Fatal(err)
		}
		checkStatus(t, migrations, version)
	}
	for version := range schema.Newest() {
		if err := schema.Down(t.Context(), db, file, version); err != nil {
			t.Fatal(err)
		}
		up(t, db, file)
		if again := dumpFile(t, db); again != newest {
			t.Errorf("up again from version %d:\n%s\nwant\n%s", version, again, newest)
		}
	}
}

func TestSQLiteStatus(t *testing.T) {
	t.Parallel()
	db := openFile(t, tempFile(t))
	for _, applied := range []bool{false, true} {
		migrations, err := schema.Status(t.Context(), db, file)
		if err != nil {
			t.Fatal(err)
		}
		current, err := schema.Current(t.Context(), db, file)
		if err != nil {
			t.Fatal(err)
		}
		if len(migrations) != int(schema.Newest()) || migrations[0].Name != "00001_core" || current > 0 != applied {
			t.Errorf("applied %v: %+v, current %d", applied, migrations, current)
		}
		for _, migration := range migrations {
			if applied && time.Since(migration.AppliedAt).Abs() > time.Minute || !applied && !migration.AppliedAt.IsZero() {
				t.Errorf("applied %v: %+v", applied, migration)
			}
		}
		if left := dumpFile(t, db); !applied && left != "" {
			t.Errorf("status created\n%s", left)
		}
		up(t, db, file)
	}
	execute(t, db, "INSERT INTO outbox_schema_version (version_id, is_applied, tstamp) VALUES (100, 1, 0)")
	before := dumpFile(t, db)
	for call, err := range map[string]error{
		"up":   schema.Up(t.Context(), db, file),
		"down": schema.Down(t.Context(), db, file, 0),
	} {
		if !errors.Is(err, schema.ErrTooNew) || !strings.HasPrefix(err.Error(), "schema outbox: the schema is newer") {
			t.Errorf("%s of a newer schema: %v", call, err)
		}
	}
	if after := dumpFile(t, db); after != before {
		t.Errorf("changed a newer schema:\n%s", after)
	}
}

// The script makes what Up makes, and Up agrees that nothing is left to do.
func TestSQLitePrint(t *testing.T) {
	t.Parallel()
	var script bytes.Buffer
	if err := schema.Print(&script, file); err != nil {
		t.Fatal(err)
	}
	printed, plain := openFile(t, tempFile(t)), openFile(t, tempFile(t))
	execute(t, printed, script.String())
	want := dumpFile(t, printed)
	up(t, printed, file)
	up(t, plain, file)
	for _, db := range []*sql.DB{printed, plain} {
		if got := dumpFile(t, db); got != want {
			t.Errorf("up made\n%s\nand the script\n%s", got, want)
		}
	}
}

func TestSQLiteConfigIsValidated(t *testing.T) {
	t.Parallel()
	db := openFile(t, tempFile(t))
	for field, config := range map[string]schema.Config{
		"Name":       {Dialect: schema.SQLite, Name: "other"},
		"RolePrefix": {Dialect: schema.SQLite, RolePrefix: "shop_"},
		"Dialect":    {Dialect: 2},
	} {
		if err := schema.Up(t.Context(), db, config); err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("%+v: %v", config, err)
		}
	}
	if err := schema.Grants(&bytes.Buffer{}, file); err == nil || !strings.Contains(err.Error(), "no roles") {
		t.Errorf("grants: %v", err)
	}
	up(t, db, schema.Config{Dialect: schema.SQLite, Name: "outbox"})
	utf16 := openPlain(t, tempFile(t))
	execute(t, utf16, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE theirs (id INTEGER)")
	if err := schema.Up(t.Context(), utf16, file); err == nil || !strings.Contains(err.Error(), "encoding UTF-16le") {
		t.Errorf("another encoding: %v", err)
	}
}

// Shows: S4.12
func TestC63SQLiteProcessesBootstrapAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		path := tempFile(t)
		var migrators []*migrator
		for range 8 {
			migrators = append(migrators, startMigrator(t, migratorVariable+"="+path, driverVariable+"=sqlite"))
		}
		for _, m := range migrators {
			m.start.Close()
		}
		for _, m := range migrators {
			if err := m.Wait(); err != nil {
				t.Errorf("round %d: %v\n%s", round, err, &m.output)
			}
		}
		versions := query[string](t, openFile(t, path), "SELECT '{' || group_concat(version_id) || '}' FROM outbox_schema_version")
		if want := versionsTo(schema.Newest()); versions != want {
			t.Errorf("round %d applied %s, want %s", round, versions, want)
		}
	}
}

// Shows: S4.12
func TestC63SQLiteHandlesBootstrapAtOnce(t *testing.T) {
	t.Parallel()
	want := openFile(t, tempFile(t))
	up(t, want, file)
	for round := range 20 {
		path := tempFile(t)
		open := openFile
		if round%2 == 1 {
			open = openPlain
		}
		handles := make([]*sql.DB, 8)
		for i := range handles {
			handles[i] = open(t, path)
		}
		start, done := make(chan struct{}), make(chan error)
		for _, db := range handles {
			go func() {
				<-start
				done <- schema.Up(t.Context(), db, file)
			}()
		}
		close(start)
		for range handles {
			if err := <-done; err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if got := dumpFile(t, handles[0]); got != dumpFile(t, want) {
			t.Fatalf("round %d made\n%s", round, got)
		}
	}
}

// nextFile returns the migrations of SQLite with another that has these statements.
func nextFile(statements string) fs.FS {
	return upTo("sqlite", schema.Newest(), "-- +goose NO TRANSACTION\n-- +goose Up\n"+statements+"\n-- +goose Down\nDROP TABLE outbox_probe;\n")
}

func TestSQLiteFailedMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	const half = "CREATE TABLE outbox_probe (id INTEGER);\nINSERT INTO outbox_audit (at) VALUES (1);"
	only := fstest.MapFS{"00001_probe.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\n" + half + "\n")}}
	up1 := openFile(t, tempFile(t))
	up(t, up1, file)
	for _, test := range []struct {
		name       string
		db         *sql.DB
		migrations fs.FS
		want       string
	}{
		{"the first", openFile(t, tempFile(t)), only, ""},
		{"the next", openFile(t, tempFile(t)), nextFile(half), dumpFile(t, up1)},
		{"the next later", up1, nextFile(half), dumpFile(t, up1)},
	} {
		err := schema.UpFiles(t.Context(), test.db, file, test.migrations)
		if err == nil || !strings.Contains(err.Error(), "_probe.sql: ") {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := dumpFile(t, test.db); got != test.want {
			t.Errorf("%s left\n%s", test.name, got)
		}
	}
	if err := schema.UpFiles(t.Context(), up1, file, nextFile("CREATE TABLE outbox_probe (id INTEGER);")); err != nil {
		t.Error("mended: ", err)
	}
	if newest := query[int64](t, up1, "SELECT max(version_id) FROM outbox_schema_version"); newest != schema.Newest()+1 {
		t.Errorf("applied %d", newest)
	}
}

// A cancelled call, too, leaves nothing, and the connection as it was.
func TestSQLiteCancelled(t *testing.T) {
	t.Parallel()
	db := openFile(t, tempFile(t))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	endless := "CREATE TABLE outbox_probe AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;"
	if err := schema.UpFiles(ctx, db, file, nextFile(endless)); err == nil {
		t.Fatal("succeeded")
	}
	if left := dumpFile(t, db); strings.Contains(left, "probe") {
		t.Errorf("left\n%s", left)
	}
	if timeout := query[int](t, db, "PRAGMA busy_timeout"); timeout != 10_000 {
		t.Errorf("the connection waits for %d ms now", timeout)
	}
	up(t, db, file)
}

func TestC65SQLiteBusyFile(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	other, err := openFile(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	db := openPlain(t, path)
	config := schema.Config{Dialect: schema.SQLite, LockTimeout: 50 * time.Millisecond}
	err = schema.Up(t.Context(), db, config)
	if !errors.Is(err, schema.ErrBlocked) || !strings.Contains(err.Error(), "end its transaction") {
		t.Errorf("got %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	up(t, db, config)
	// Where nothing is to be done a writer does not matter.
	if other, err = openFile(t, path).BeginTx(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	up(t, db, config)
}

var (
	table      = regexp.MustCompile(`(?s)CREATE TABLE outbox\.(\w+) \((.*?)\n\)`)
	index      = regexp.MustCompile(`CREATE (?:UNIQUE )?INDEX (\w+ ON outbox\.\w+) `)
	column     = regexp.MustCompile(`(?m)^    ([a-z_]+) +[a-zA-Z]+(?: [^\n]*)$`)
	constraint = regexp.MustCompile(`CONSTRAINT (\w+ (?:CHECK|(?:PRIMARY KEY|UNIQUE) \([^)]*\)))`)
)

// alike puts what the dialects write differently into one form. An instant has a default in PostgreSQL alone: on SQLite statements pass the
// one reading of their clock.
var alike = strings.NewReplacer("GENERATED BY DEFAULT AS IDENTITY", "NOT NULL", "GENERATED ALWAYS AS IDENTITY", "NOT NULL", " DEFAULT statement_timestamp()", "", " DEFAULT clock_timestamp()", "",
	"INDEX outbox_", "INDEX ", "outbox_", "outbox.")

// postgresAlone is what a file has no need of: its positions are its transaction numbers, and it is always its own.
var postgresAlone = []string{
	"incarnation: column base, not null true, default true",
	"incarnation: column written_by, not null true, default true",
	"index event_order ON outbox.event",
}

// sqliteAlone is what PostgreSQL has as an expression of an index.
var sqliteAlone = []string{"claim: column over_at, not null true, default false"}

// shape returns what a migration makes, one line for each thing that both dialects must have.
func shape(t *testing.T, name string) []string {
	t.Helper()
	content, err := fs.ReadFile(schema.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	text := alike.Replace(comments.ReplaceAllString(string(content), ""))
	var lines []string
	for _, made := range table.FindAllStringSubmatch(text, -1) {
		for _, c := range column.FindAllStringSubmatch(made[2], -1) {
			lines = append(lines, fmt.Sprintf("%s: column %s, not null %v, default %v", made[1], c[1],
				strings.Contains(c[0], "NOT NULL"), strings.Contains(c[0], "DEFAULT")))
			if strings.Contains(c[0], "PRIMARY KEY") {
				lines = append(lines, fmt.Sprintf("%s: constraint %[1]s_pkey PRIMARY KEY (%s)", made[1], c[1]))
			}
		}
		for _, c := range constraint.FindAllStringSubmatch(made[2], -1) {
			lines = append(lines, fmt.Sprintf("%s: constraint %s", made[1], c[1]))
		}
	}
	for _, made := range index.FindAllStringSubmatch(text, -1) {
		lines = append(lines, "index "+made[1])
	}
	slices.Sort(lines)
	return lines
}

func TestDialectsHaveTheSameTables(t *testing.T) {
	t.Parallel()
	postgres, err := fs.Glob(schema.FS, "postgres/*")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range postgres {
		counterpart := strings.Replace(name, "postgres/", "sqlite/", 1)
		got, want := shape(t, counterpart), shape(t, name)
		read += len(want)
		for _, line := range want {
			if !slices.Contains(got, line) && !slices.Contains(postgresAlone, line) {
				t.Errorf("%s lacks: %s", counterpart, line)
			}
		}
		for _, line := range got { // SQLite has more checks: those that PostgreSQL's types make
			if !slices.Contains(want, line) && !slices.Contains(sqliteAlone, line) && !strings.HasSuffix(line, " CHECK") {
				t.Errorf("%s lacks: %s", name, line)
			}
		}
	}
	if read < 100 {
		t.Errorf("read only %d lines", read)
	}
}
