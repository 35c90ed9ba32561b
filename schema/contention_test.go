package schema_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

const (
	// migratorVariable makes the test binary a process that migrates the database of that URL, with the driver named by
	// driverVariable, to the version after the newest if nextVariable is set.
	migratorVariable = "FENCEPOST_SCHEMA_MIGRATOR"
	driverVariable   = "FENCEPOST_SCHEMA_DRIVER"
	nextVariable     = "FENCEPOST_SCHEMA_NEXT"
)

// migratorMain connects, says so, waits for the end of its input and migrates. It returns the exit code.
func migratorMain() int {
	if err := migrateOnSignal(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func migrateOnSignal() error {
	db, err := sql.Open(os.Getenv(driverVariable), os.Getenv(migratorVariable))
	if err != nil {
		return err
	}
	defer db.Close()
	if os.Getenv(driverVariable) != "sqlite" { // whose ping is not told to wait for others
		if err := db.Ping(); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	if os.Getenv(driverVariable) == "sqlite" {
		return schema.Up(context.Background(), db, file)
	}
	if os.Getenv(nextVariable) == "" {
		return schema.Up(context.Background(), db, schema.Config{})
	}
	return schema.UpFiles(context.Background(), db, schema.Config{LockTimeout: time.Hour}, next())
}

type migrator struct {
	*exec.Cmd
	start  io.Closer
	output bytes.Buffer
}

// startMigrator returns a process that is connected and waits for its start.
func startMigrator(t *testing.T, env ...string) *migrator {
	t.Helper()
	m := &migrator{Cmd: exec.Command(os.Args[0])}
	m.Env = append(os.Environ(), env...)
	m.Stderr = &m.output
	stdin, err := m.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.start = stdin
	stdout, err := m.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		m.Process.Kill()
		_ = m.Wait() // the output is complete only then
		t.Fatalf("a migrator said %q, %v\n%s", line, err, &m.output)
	}
	return m
}

// Shows: S4.12
func TestC63ReplicasBootstrapAtOnce(t *testing.T) {
	t.Parallel()
	rounds, upgrades := 1, 1
	if os.Getenv("FENCEPOST_FULL") != "" {
		rounds, upgrades = 50, 10
	}
	single := connect(t, pgtest.New(t))
	fresh := dump(t, single, "outbox")
	if err := schema.UpFiles(t.Context(), single, schema.Config{}, next()); err != nil {
		t.Fatal(err)
	}
	upgraded := dump(t, single, "outbox")

	for _, start := range []struct {
		name     string
		rounds   int
		database func(testing.TB) string
		env      string
		versions string
		want     string
	}{
		{"empty database", rounds, pgtest.Empty, nextVariable + "=", versionsTo(schema.Newest()), fresh},
		{"previous version", upgrades, pgtest.New, nextVariable + "=1", versionsTo(schema.Newest() + 1), upgraded},
	} {
		t.Run(start.name, func(t *testing.T) {
			for round := range start.rounds {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					dsn := start.database(t)
					var migrators []*migrator
					for i := range 8 {
						driver := []string{"pgx", "postgres"}[i%2]
						migrators = append(migrators, startMigrator(t, migratorVariable+"="+dsn, driverVariable+"="+driver, start.env))
					}
					for _, m := range migrators {
						m.start.Close()
					}
					for _, m := range migrators {
						if err := m.Wait(); err != nil {
							t.Errorf("a migrator: %v\n%s", err, &m.output)
						}
					}
					db := connect(t, dsn)
					equalDumps(t, dump(t, db, "outbox"), start.want)
					versions := query[string](t, db, appliedVersions)
					if versions != start.versions {
						t.Errorf("applied %s, want %s", versions, start.versions)
					}
				})
			}
		})
	}
}

// A migrator that is killed half-way leaves the versions that it completed and nothing that stops the next one.
func TestKilledMigrator(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	db := connect(t, dsn)
	if err := schema.Down(t.Context(), db, schema.Config{}, 1); err != nil {
		t.Fatal(err)
	}
	reader := startReader(t, dsn, "outbox.message")
	m := startMigrator(t, migratorVariable+"="+dsn, driverVariable+"=pgx", nextVariable+"=1")
	m.start.Close()
	awaitLockWait(t, db, "relation")
	if err := m.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	m.Wait()
	// The second version locks nothing that exists, so it was complete. The session still waits, with what it locked since.
	if reached := current(t, db); reached < 2 {
		t.Errorf("the migrator kept version %d", reached)
	}
	done := make(chan error, 1)
	go func() { done <- schema.UpFiles(t.Context(), db, schema.Config{LockTimeout: time.Minute}, next()) }()
	reader.stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if versions, want := query[string](t, db, appliedVersions), versionsTo(schema.Newest()+1); versions != want {
		t.Errorf("applied %s, want %s", versions, want)
	}
	whole := connect(t, pgtest.New(t))
	if err := schema.UpFiles(t.Context(), whole, schema.Config{}, next()); err != nil {
		t.Fatal(err)
	}
	equalDumps(t, dump(t, db, "outbox"), dump(t, whole, "outbox"))
}

func TestC65WaitingDDLGivesUp(t *testing.T) {
	t.Parallel()
	const timeout = 500 * time.Millisecond
	config := schema.Config{LockTimeout: timeout}
	for _, change := range []struct {
		name string
		run  func(context.Context, *sql.DB, fs.FS) error
	}{
		{"up", func(ctx context.Context, db *sql.DB, next fs.FS) error { return schema.UpFiles(ctx, db, config, next) }},
		{"down", func(ctx context.Context, db *sql.DB, _ fs.FS) error { return schema.Down(ctx, db, config, 0) }},
	} {
		for _, driver := range []string{"pgx", "postgres"} {
			t.Run(change.name+" "+driver, func(t *testing.T) {
				t.Parallel()
				dsn := pgtest.New(t)
				db, next := connectWith(t, driver, dsn), next()
				before := dump(t, db, "outbox")
				// The last table that either direction wants, so that others are locked by then.
				reader := startReader(t, dsn, "outbox.message")

				done := make(chan error, 1)
				go func() { done <- change.run(t.Context(), db, next) }()
				// A sender goes on meanwhile, on a table that the change has locked by then.
				var err error
				for running := true; running; {
					began := time.Now()
					execute(t, db, "SELECT FROM outbox.queue FOR UPDATE")
					if took := time.Since(began); took > timeout+10*time.Second { // a busy machine adds to it
						t.Errorf("a sender was held up for %v", took)
					}
					select {
					case err = <-done:
						running = false
					default:
					}
				}
				if !errors.Is(err, schema.ErrBlocked) {
					t.Fatalf("got %v", err)
				}
				blocker := fmt.Sprintf(`after %v, held by pid %d (user %s, application "nightly-report", idle in transaction, transaction open for `,
					timeout, reader.pid, reader.user)
				if !strings.Contains(err.Error(), blocker) {
					t.Errorf("no %q in: %v", blocker, err)
				}
				// What was complete before it had to wait stays, as a whole.
				reached := current(t, db)
				equalDumps(t, dump(t, db, "outbox"), dumpAt(t, reached))
				if versions := query[string](t, db, appliedVersions); reached < 1 || versions != versionsTo(reached) {
					t.Errorf("it has the versions %s", versions)
				}

				reader.stop()
				if err := change.run(t.Context(), db, next); err != nil {
					t.Errorf("run again: %v", err)
				}
				if now := dump(t, db, "outbox"); now == before || (change.name == "down" && now != "") {
					t.Errorf("run again, it left\n%s", now)
				}
			})
		}
	}
}

// The same holds for what comes before the migrations.
func TestC65BootstrapGivesUp(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	db := connect(t, dsn)
	owner, err := connect(t, with(dsn, "application_name", "backfill")).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Rollback()
	if _, err := owner.ExecContext(t.Context(), "LOCK TABLE outbox.schema_version"); err != nil {
		t.Fatal(err)
	}
	err = schema.Up(t.Context(), db, schema.Config{LockTimeout: 50 * time.Millisecond})
	if !errors.Is(err, schema.ErrBlocked) || !strings.Contains(err.Error(), `"backfill"`) {
		t.Errorf("got %v", err)
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	db := connect(t, dsn)
	reader := startReader(t, dsn, "outbox.queue")
	execute(t, db, "SELECT pg_sleep(0.01)") // it must be older than the wait was long
	list := func(db *sql.DB, waited time.Duration) []string {
		t.Helper()
		blockers, err := schema.Blockers(t.Context(), db, schema.Config{LockTimeout: waited})
		if err != nil {
			t.Fatal(err)
		}
		return blockers
	}
	who := fmt.Sprintf(`pid %d (user %s, application "nightly-report"`, reader.pid, reader.user)
	if got := list(db, time.Millisecond); len(got) != 1 || !strings.HasPrefix(got[0], who+", idle in transaction, ") {
		t.Errorf("got %q", got)
	}
	if got := list(db, time.Hour); len(got) != 0 {
		t.Errorf("came after the wait began: %q", got)
	}
	// Another role is not told how old the reader is.
	stranger := connect(t, with(dsn, "role", createRole(t, dsn)))
	if got := list(stranger, time.Hour); len(got) != 1 || got[0] != who+")" {
		t.Errorf("as another role: %q", got)
	}
}

// The transaction that holds the lock idles as long as migrations run: it must neither be ended nor hold a snapshot, which
// would keep vacuum from its work.
func TestLockWhileMigrating(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	reader := startReader(t, dsn, "outbox.message")
	admin := connect(t, dsn)
	for key, value := range map[string]string{
		"application_name":                    "migrator",
		"default_transaction_isolation":       "serializable",
		"idle_in_transaction_session_timeout": "3s",
	} {
		dsn = with(dsn, key, value)
	}
	db := connect(t, dsn)
	done := make(chan error, 1)
	go func() { done <- schema.UpFiles(t.Context(), db, schema.Config{LockTimeout: time.Minute}, next()) }()
	awaitLockWait(t, admin, "relation")
	execute(t, admin, "SELECT pg_sleep(3.1)") // past the limit above
	idle := query[string](t, admin, `SELECT string_agg(concat(state, ' ', backend_xmin), ', ') FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'migrator' AND wait_event_type <> 'Lock'`)
	if idle != "idle in transaction " {
		t.Errorf("beside the migration: %q", idle)
	}
	reader.stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// reader is a transaction that read a table and stays open.
type reader struct {
	pid  int
	user string
	stop func()
}

func startReader(t *testing.T, dsn, table string) *reader {
	t.Helper()
	db := connect(t, with(dsn, "application_name", "nightly-report"))
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{stop: func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}}
	row := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid(), current_user, (SELECT count(*) FROM "+table+")")
	if err := row.Scan(&r.pid, &r.user, new(int)); err != nil {
		t.Fatal(err)
	}
	return r
}

// awaitLockWait returns when a session waits for a lock of that type in the database.
func awaitLockWait(t *testing.T, db *sql.DB, lockType string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		var waiting bool
		err := db.QueryRowContext(ctx, `SELECT EXISTS (
			SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
			WHERE d.datname = current_database() AND l.locktype = $1::text AND NOT l.granted)`, lockType).Scan(&waiting)
		if err != nil {
			t.Fatalf("nobody waits for a lock: %v", err)
		}
		if waiting {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
