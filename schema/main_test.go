package schema_test

import (
	"database/sql"
	_ "embed"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv(migratorVariable) != "" {
		os.Exit(migratorMain())
	}
	pgtest.Main(m)
}

func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	return connectWith(t, "pgx", dsn)
}

func connectWith(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// with returns the URL with one more connection parameter.
func with(dsn, key, value string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err)
	}
	query := u.Query()
	query.Set(key, value)
	u.RawQuery = query.Encode()
	return u.String()
}

func up(t *testing.T, db *sql.DB, config schema.Config) {
	t.Helper()
	if err := schema.Up(t.Context(), db, config); err != nil {
		t.Fatal("up: ", err)
	}
}

func execute(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// query returns the only column of the only row.
func query[T any](t *testing.T, db *sql.DB, statement string, args ...any) T {
	t.Helper()
	var value T
	if err := db.QueryRowContext(t.Context(), statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// createRole returns a role without rights, for the test's time.
func createRole(t *testing.T, dsn string) string {
	t.Helper()
	db := connect(t, dsn)
	role := "fencepost_test_" + query[string](t, db, "SELECT substr(md5(random()::text), 1, 16)")
	execute(t, db, "CREATE ROLE "+role)
	t.Cleanup(func() {
		if _, err := db.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	})
	return role
}

//go:embed testdata/catalogue.sql
var catalogue string

// dump returns everything that the catalogue says about a schema, one line an object, with the schema's name left out.
func dump(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), catalogue, name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines.String()
}

// equalDumps fails with the lines that only one of the dumps has.
func equalDumps(t *testing.T, got, want string) {
	t.Helper()
	for line := range strings.Lines(got) {
		if !strings.Contains(want, line) {
			t.Errorf("only now: %s", line)
		}
	}
	for line := range strings.Lines(want) {
		if !strings.Contains(got, line) {
			t.Errorf("no longer: %s", line)
		}
	}
	if want == "" {
		t.Error("nothing to compare")
	}
}

// probe is what next adds: it locks two tables one after the other.
const probe = `
-- +goose Up
SET LOCAL lock_timeout = '5s';
ALTER TABLE outbox.queue ADD COLUMN probe bigint;
ALTER TABLE outbox.message ADD COLUMN probe bigint;

-- +goose Down
SET LOCAL lock_timeout = '5s';
ALTER TABLE outbox.message DROP COLUMN probe;
ALTER TABLE outbox.queue DROP COLUMN probe;
`

// next returns the migrations of PostgreSQL with one more.
func next() fs.FS { return upTo("postgres", schema.Newest(), probe) }

// upTo returns a dialect's migrations up to a version, and more after them.
func upTo(dialect string, version int64, more ...string) fs.FS {
	files := fstest.MapFS{}
	names, err := fs.Glob(schema.FS, dialect+"/*.sql")
	if err != nil {
		panic(err)
	}
	for _, name := range names[:version] { // TestMigrationsKeepTheRules: they are numbered without a gap
		content, err := fs.ReadFile(schema.FS, name)
		if err != nil {
			panic(err)
		}
		files[path.Base(name)] = &fstest.MapFile{Data: content}
	}
	for _, text := range more {
		version++
		files[fmt.Sprintf("%05d_probe.sql", version)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// dumpAt returns the dump of a schema that was never above the version.
func dumpAt(t *testing.T, version int64) string {
	t.Helper()
	db := connect(t, pgtest.Empty(t))
	if err := schema.UpFiles(t.Context(), db, schema.Config{}, upTo("postgres", version)); err != nil {
		t.Fatal(err)
	}
	return dump(t, db, "outbox")
}

// current returns the version of the schema outbox.
func current(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	version, err := schema.Current(t.Context(), db, schema.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return version
}

const appliedVersions = "SELECT array_agg(version_id ORDER BY id)::text FROM outbox.schema_version"

// versionsTo returns what appliedVersions finds in a schema of that version.
func versionsTo(version int64) string {
	versions := "{0"
	for number := range version {
		versions += fmt.Sprintf(",%d", number+1)
	}
	return versions + "}"
}
