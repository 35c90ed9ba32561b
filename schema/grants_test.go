package schema_test

import (
	"bytes"
	"database/sql"
	_ "embed"
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

var (
	update = flag.Bool("update", false, "write the golden of rights")

	//go:embed testdata/rights.sql
	rightsQuery string
)

const rightsGolden = "testdata/rights.golden"

// rights says who may do what in a schema, a line for each object and verb.
func rights(t *testing.T, db *sql.DB, name, prefix string) string {
	t.Helper()
	roles := []string{"public"}
	for _, role := range schema.Roles() {
		roles = append(roles, prefix+role)
	}
	rows, err := db.QueryContext(t.Context(), rightsQuery, name, roles, append([]string{"PUBLIC"}, schema.Roles()...))
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
		lines.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines.String()
}

// grant runs the script of Grants.
func grant(t *testing.T, dsn string, config schema.Config) {
	t.Helper()
	var script strings.Builder
	if err := schema.Grants(&script, config); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, dsn), script.String())
}

// Every object, verb and role, from whatever there was before, in a schema of any name.
// Shows: S3.6
func TestC67Rights(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	db := connect(t, dsn)
	prefix := pgtest.RolePrefix(t, dsn)
	grant(t, dsn, schema.Config{RolePrefix: prefix})
	got := rights(t, db, "outbox", prefix)
	if *update {
		if err := os.WriteFile(rightsGolden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(rightsGolden)
	if err != nil {
		t.Fatal(err)
	}
	equalDumps(t, got, string(golden))

	sender := `"` + prefix + `sender"`
	for before, change := range map[string]string{
		"nothing changed": "SELECT 1",
		"less":            "REVOKE ALL ON outbox.queue FROM " + sender + "; REVOKE USAGE ON SCHEMA outbox FROM " + sender,
		"more": "GRANT ALL ON ALL TABLES IN SCHEMA outbox TO PUBLIC, " + sender + "; GRANT CREATE ON SCHEMA outbox TO PUBLIC; " +
			"GRANT UPDATE (payload) ON outbox.message TO " + sender + "; GRANT ALL ON ALL SEQUENCES IN SCHEMA outbox TO " + sender,
		"another owner": "ALTER TABLE outbox.queue OWNER TO " + sender + "; ALTER SCHEMA outbox OWNER TO CURRENT_USER",
		"a role less":   "DROP OWNED BY " + sender + "; DROP ROLE " + sender,
	} {
		execute(t, db, change)
		grant(t, dsn, schema.Config{RolePrefix: prefix})
		if again := rights(t, db, "outbox", prefix); again != got {
			t.Errorf("with %s before:", before)
			equalDumps(t, again, got)
		}
	}

	up(t, db, schema.Config{Name: "outbox_2"})
	other := pgtest.RolePrefix(t, dsn)
	grant(t, dsn, schema.Config{Name: "outbox_2", RolePrefix: other})
	equalDumps(t, rights(t, db, "outbox_2", other), got)
	equalDumps(t, rights(t, db, "outbox", prefix), got)
	for line := range strings.Lines(rights(t, db, "outbox", other)) {
		if !strings.HasSuffix(line, ": nobody\n") {
			t.Errorf("the roles of one schema have a right in another: %s", line)
		}
	}
}

// An owner who is no superuser hands over and stays able to migrate; who is no owner changes nothing.
func TestC67GrantsByTheOwner(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	admin := connect(t, dsn)
	owner := createRole(t, dsn)
	execute(t, admin, "ALTER ROLE "+owner+" CREATEROLE; GRANT CREATE ON DATABASE "+query[string](t, admin, "SELECT current_database()")+" TO "+owner)
	asOwner := with(dsn, "role", owner)
	up(t, connect(t, asOwner), schema.Config{})
	prefix := pgtest.RolePrefix(t, dsn)
	config := schema.Config{RolePrefix: prefix}
	for range 2 {
		grant(t, asOwner, config)
	}
	golden, err := os.ReadFile(rightsGolden)
	if err != nil {
		t.Fatal(err)
	}
	equalDumps(t, rights(t, admin, "outbox", prefix), string(golden))
	if err := schema.UpFiles(t.Context(), connect(t, asOwner), schema.Config{}, next()); err != nil {
		t.Errorf("the former owner migrates: %v", err)
	}

	before := dump(t, admin, "outbox")
	var script bytes.Buffer
	if err := schema.Grants(&script, config); err != nil {
		t.Fatal(err)
	}
	for _, role := range schema.Roles()[1:] {
		other := connect(t, with(dsn, "role", prefix+role))
		if _, err := other.ExecContext(t.Context(), script.String()); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("the %s grants rights: %v", role, err)
		}
	}
	equalDumps(t, dump(t, admin, "outbox"), before)
}

// Members of the migrator's role migrate; nobody else does, and nobody needs to where the schema is current.
func TestC67Migrate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	prefix := pgtest.RolePrefix(t, dsn)
	grant(t, dsn, schema.Config{RolePrefix: prefix})
	for _, role := range schema.Roles()[1:] {
		db := connect(t, with(dsn, "role", prefix+role))
		if err := schema.Up(t.Context(), db, schema.Config{}); role != "repair" && err != nil {
			t.Errorf("the %s looks whether the schema is current: %v", role, err)
		}
		for call, err := range map[string]error{
			"up":   schema.UpFiles(t.Context(), db, schema.Config{}, next()),
			"down": schema.Down(t.Context(), db, schema.Config{}, 0),
		} {
			if err == nil || !strings.Contains(err.Error(), "permission denied") && !strings.Contains(err.Error(), "must be owner") {
				t.Errorf("%s as %s: %v", call, role, err)
			}
		}
	}
	migrator := connect(t, with(dsn, "role", prefix+"migrator"))
	if err := schema.UpFiles(t.Context(), migrator, schema.Config{}, next()); err != nil {
		t.Errorf("up as migrator: %v", err)
	}
}

// What a reviewer reads in the repository is what Grants writes.
func TestGrantsIsTheFile(t *testing.T) {
	t.Parallel()
	file, err := fs.ReadFile(schema.FS, "roles/postgres.sql")
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	if err := schema.Grants(&script, schema.Config{}); err != nil || strings.Replace(script.String(), "'5000ms'", "'5s'", 1) != string(file) {
		t.Errorf("it differs, %v", err)
	}
	for prefix, problem := range map[string]string{`a"b`: "holds more than", "pg_": "reserved", strings.Repeat("x", 56): "has 64 bytes", "'; --": "holds more than"} {
		if err := schema.Grants(&script, schema.Config{RolePrefix: prefix}); err == nil || !strings.Contains(err.Error(), "Config.RolePrefix") || !strings.Contains(err.Error(), problem) {
			t.Errorf("the prefix %q: %v", prefix, err)
		}
	}
}
