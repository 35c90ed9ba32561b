package schema_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

// Ways to reach the server, by driver and connection parameter.
var drivers = []struct{ name, driver, key, value string }{
	{"pgx", "pgx", "default_query_exec_mode", "cache_statement"},
	{"pgx describing", "pgx", "default_query_exec_mode", "cache_describe"},
	{"pgx asking each time", "pgx", "default_query_exec_mode", "describe_exec"},
	{"pgx guessing types", "pgx", "default_query_exec_mode", "exec"},
	{"pgx without parameters", "pgx", "default_query_exec_mode", "simple_protocol"},
	{"lib/pq", "postgres", "binary_parameters", "no"},
	{"lib/pq unnamed", "postgres", "binary_parameters", "yes"},
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			db := connectWith(t, driver.driver, with(pgtest.Empty(t), driver.key, driver.value))
			up(t, db, schema.Config{})
			first := dump(t, db, "outbox")
			if err := schema.Down(t.Context(), db, schema.Config{}, 0); err != nil {
				t.Fatal(err)
			}
			if left := dump(t, db, "outbox"); left != "" {
				t.Errorf("left by down:\n%s", left)
			}
			up(t, db, schema.Config{})
			equalDumps(t, dump(t, db, "outbox"), first)
			up(t, db, schema.Config{}) // nothing to do
			equalDumps(t, dump(t, db, "outbox"), first)
		})
	}
}

func TestTwoInstallations(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	names := []string{"outbox", "My-Schema", "select"}
	for _, name := range names {
		up(t, db, schema.Config{Name: name})
	}
	for _, name := range names[1:] {
		equalDumps(t, dump(t, db, name), dump(t, db, "outbox"))
	}
	before := dump(t, db, "outbox")
	if err := schema.Down(t.Context(), db, schema.Config{Name: "My-Schema"}, 0); err != nil {
		t.Fatal(err)
	}
	if left := dump(t, db, "My-Schema"); left != "" {
		t.Errorf("left by down:\n%s", left)
	}
	equalDumps(t, dump(t, db, "outbox"), before)
	current, err := schema.Current(t.Context(), db, schema.Config{Name: "select"})
	if err != nil || current != schema.Newest() {
		t.Errorf("the other installation has version %d, %v", current, err)
	}
}

// What a role or database has as its defaults must not decide whether a migration succeeds.
func TestHostileDefaults(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	admin := connect(t, dsn)
	for _, setting := range []string{
		"search_path = ''",
		"default_transaction_isolation = 'serializable'",
		"lock_timeout = '300ms'",
		"statement_timeout = '10s'",
		"idle_in_transaction_session_timeout = '3s'",
		"DateStyle = 'SQL, DMY'",
		"standard_conforming_strings = off",
		"TimeZone = 'Asia/Kathmandu'",
	} {
		execute(t, admin, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+strings.ReplaceAll(setting, "'", "''")+`', current_database()); END $$`)
	}
	other, err := admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.ExecContext(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended('fencepost schema outbox', 0))"); err != nil {
		t.Fatal(err)
	}
	db := connect(t, dsn)
	done := make(chan error, 1)
	go func() { done <- schema.Up(t.Context(), db, schema.Config{}) }()
	awaitLockWait(t, admin, "advisory")
	// The wait for another migrator outlasts the timeouts above.
	if _, err := other.ExecContext(t.Context(), "SELECT pg_sleep(0.5)"); err != nil {
		t.Fatal(err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	plain := connect(t, pgtest.Empty(t))
	up(t, plain, schema.Config{})
	equalDumps(t, dump(t, admin, "outbox"), dump(t, plain, "outbox"))
	if err := schema.Down(t.Context(), db, schema.Config{}, 0); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	admin := connect(t, dsn)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := query[string](t, admin, "SELECT current_database()") + strings.ToLower(encoding)
		execute(t, admin, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING '"+encoding+"'")
		t.Cleanup(func() {
			again := connect(t, dsn)
			if _, err := again.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
		for _, driver := range []string{"pgx", "postgres"} {
			u, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			u.Path = "/" + name
			other := connectWith(t, driver, u.String())
			if err := schema.Up(t.Context(), other, schema.Config{}); err == nil || !strings.Contains(err.Error(), "encoding "+encoding) {
				t.Errorf("%s: %v", driver, err)
			}
			if left := query[bool](t, other, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'outbox')"); left {
				t.Errorf("%s: a schema is left", driver)
			}
			other.Close()
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	for _, test := range []struct {
		config schema.Config
		fields []string
	}{
		{schema.Config{Name: `a"b`}, []string{"Name"}},
		{schema.Config{Name: strings.Repeat("x", 64)}, []string{"Name"}},
		{schema.Config{LockTimeout: -1}, []string{"LockTimeout"}},
		{schema.Config{LockTimeout: time.Microsecond}, []string{"LockTimeout"}},
		{schema.Config{LockTimeout: 2 * time.Hour}, []string{"LockTimeout"}},
		{schema.Config{Name: "a b", LockTimeout: -1}, []string{"Name", "LockTimeout"}},
	} {
		_, statusErr := schema.Status(t.Context(), db, test.config)
		for call, err := range map[string]error{
			"up":     schema.Up(t.Context(), db, test.config),
			"down":   schema.Down(t.Context(), db, test.config, 0),
			"print":  schema.Print(&bytes.Buffer{}, test.config),
			"status": statusErr,
		} {
			for _, field := range test.fields {
				if err == nil || !strings.Contains(err.Error(), "Config."+field) {
					t.Errorf("%s with %+v: got %v, want the field %s named", call, test.config, err, field)
				}
			}
		}
	}
	for _, version := range []int64{-1, schema.Newest() + 1} {
		if err := schema.Down(t.Context(), db, schema.Config{}, version); err == nil {
			t.Errorf("down to version %d is accepted", version)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	status := func() []schema.Migration {
		t.Helper()
		migrations, err := schema.Status(t.Context(), db, schema.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return migrations
	}
	before := status()
	if len(before) != int(schema.Newest()) || before[0].Version != 1 || before[0].Name != "00001_core" || !before[0].AppliedAt.IsZero() {
		t.Errorf("on an empty database: %+v", before)
	}
	if left := dump(t, db, "outbox"); left != "" {
		t.Errorf("status created\n%s", left)
	}
	up(t, db, schema.Config{})
	for _, migration := range status() {
		if migration.AppliedAt.IsZero() {
			t.Errorf("pending after up: %+v", migration)
		}
	}
	execute(t, db, "INSERT INTO outbox.schema_version (version_id, is_applied) VALUES (99, true)")
	after := status()
	if last := after[len(after)-1]; last.Version != 99 || last.Name != "" || last.AppliedAt.IsZero() {
		t.Errorf("of a newer release: %+v", last)
	}
	if current, err := schema.Current(t.Context(), db, schema.Config{}); err != nil || current != 99 {
		t.Errorf("current is %d, %v", current, err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	execute(t, db, "INSERT INTO outbox.schema_version (version_id, is_applied) VALUES (100, true)")
	before := dump(t, db, "outbox")
	for call, err := range map[string]error{
		"up":   schema.Up(t.Context(), db, schema.Config{}),
		"down": schema.Down(t.Context(), db, schema.Config{}, 0),
	} {
		if !errors.Is(err, schema.ErrTooNew) || !strings.Contains(err.Error(), "version 100") || !strings.Contains(err.Error(), fmt.Sprintf("above %d", schema.Newest())) {
			t.Errorf("%s: %v", call, err)
		}
	}
	equalDumps(t, dump(t, db, "outbox"), before)
}

// Beside a newer program whose migration only added, an older one starts as ever. It does not take back what it does not know.
func TestNewerSchemaThatOnlyAdds(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	if err := schema.UpFiles(t.Context(), db, schema.Config{}, next()); err != nil {
		t.Fatal(err)
	}
	before := dump(t, db, "outbox")
	up(t, db, schema.Config{})
	if err := schema.Down(t.Context(), db, schema.Config{}, 0); !errors.Is(err, schema.ErrTooNew) {
		t.Errorf("down: %v", err)
	}
	equalDumps(t, dump(t, db, "outbox"), before)
}

// The script for a reviewer makes what Up makes, and Up agrees that nothing is left to do.
// Shows: S1.38
func TestPrint(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	var script strings.Builder
	if err := schema.Print(&script, schema.Config{Name: "My-Schema", LockTimeout: 1500 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(script.String(), "'5s'") || !strings.Contains(script.String(), "lock_timeout = '1500ms'") {
		t.Error("the lock timeout is not the configured one")
	}
	execute(t, db, script.String())
	rows := "SELECT array_agg(version_id ORDER BY id)::text FROM %s.schema_version"
	printed := query[string](t, db, strings.ReplaceAll(rows, "%s", `"My-Schema"`))
	up(t, db, schema.Config{Name: "My-Schema"})
	up(t, db, schema.Config{})
	equalDumps(t, dump(t, db, "My-Schema"), dump(t, db, "outbox"))
	if applied := query[string](t, db, strings.ReplaceAll(rows, "%s", "outbox")); printed != applied {
		t.Errorf("versions %s, and %s by up", printed, applied)
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	var log bytes.Buffer
	config := schema.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	up(t, db, config)
	if lines := strings.Count(log.String(), "schema migrated"); lines != int(schema.Newest()) {
		t.Errorf("%d migrations logged:\n%s", lines, &log)
	}
	log.Reset()
	up(t, db, config)
	if log.Len() > 0 {
		t.Errorf("logged with nothing to do: %s", &log)
	}
}

func TestPoolTooSmall(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	db.SetMaxOpenConns(1)
	if err := schema.Up(t.Context(), db, schema.Config{}); err == nil || !strings.Contains(err.Error(), "MaxOpenConns 1") {
		t.Errorf("a pool of one: %v", err)
	}
	db.SetMaxOpenConns(2)
	held, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = schema.UpConnecting(t.Context(), db, 2*time.Second)
	if err == nil || !strings.Contains(err.Error(), "got no connection within 2s, with 2 in use") {
		t.Errorf("a pool with one left: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	up(t, db, schema.Config{})
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.Empty(t))
	other, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.ExecContext(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended('fencepost schema outbox', 0))"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- schema.Up(ctx, db, schema.Config{}) }()
	awaitLockWait(t, db, "advisory")
	up(t, db, schema.Config{Name: "other"}) // has a lock of its own
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The right to create a schema is needed only where there is none, and none at all where the version is current.
func TestRights(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	admin := connect(t, dsn)
	role := createRole(t, dsn)
	db := connect(t, with(dsn, "role", role))
	config := schema.Config{Name: "made-by-admin"}
	if err := schema.Up(t.Context(), db, config); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("may create a schema: %v", err)
	}
	execute(t, admin, `CREATE SCHEMA "made-by-admin" AUTHORIZATION `+role)
	up(t, db, config)
	if err := schema.Down(t.Context(), db, config, 0); err != nil {
		t.Fatal(err)
	}
	if !query[bool](t, admin, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'made-by-admin')") {
		t.Error("down dropped a schema that up did not make")
	}
	up(t, admin, schema.Config{})
	execute(t, admin, "GRANT USAGE ON SCHEMA outbox TO "+role+"; GRANT SELECT ON outbox.schema_version TO "+role)
	up(t, db, schema.Config{})
}

func TestDownKeepsWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	execute(t, db, "CREATE TABLE outbox.theirs AS SELECT 1 AS id")
	if err := schema.Down(t.Context(), db, schema.Config{}, 0); err != nil {
		t.Fatal(err)
	}
	if tables := query[string](t, db, "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'outbox'"); tables != "theirs" {
		t.Errorf("left: %s", tables)
	}
	if err := schema.Down(t.Context(), db, schema.Config{}, 0); err != nil {
		t.Error("once more: ", err)
	}
	up(t, db, schema.Config{})
}

// Each version down leaves what the way up to it made, and the way up again makes the rest.
func TestDownToVersion(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	newest := dump(t, db, "outbox")
	for version := schema.Newest(); version >= 0; version-- {
		if err := schema.Down(t.Context(), db, schema.Config{}, version); err != nil {
			t.Fatal(err)
		}
		if left := dump(t, db, "outbox"); version > 0 {
			equalDumps(t, left, dumpAt(t, version))
		} else if left != "" {
			t.Errorf("left by down:\n%s", left)
		}
		migrations, err := schema.Status(t.Context(), db, schema.Config{})
		if err != nil {
			t.Fatal(err)
		}
		checkStatus(t, migrations, version)
		if got := current(t, db); got != version {
			t.Errorf("down to version %d reached %d", version, got)
		}
	}
	for version := range schema.Newest() {
		if err := schema.Down(t.Context(), db, schema.Config{}, version); err != nil {
			t.Fatal(err)
		}
		up(t, db, schema.Config{})
		equalDumps(t, dump(t, db, "outbox"), newest)
		if versions := query[string](t, db, appliedVersions); versions != versionsTo(schema.Newest()) {
			t.Errorf("up again from version %d applied %s", version, versions)
		}
	}
}

// checkStatus fails unless all migrations are there, and those up to the version are applied.
func checkStatus(t *testing.T, migrations []schema.Migration, version int64) {
	t.Helper()
	if len(migrations) != int(schema.Newest()) {
		t.Errorf("at version %d there are %d migrations", version, len(migrations))
	}
	for i, m := range migrations {
		if m.Version != int64(i+1) || !strings.HasPrefix(m.Name, fmt.Sprintf("%05d_", i+1)) || m.AppliedAt.IsZero() != (m.Version > version) {
			t.Errorf("at version %d: %+v", version, m)
		}
	}
}
