// Package pgtest gives each test a PostgreSQL database of its own.
//
// The server is the one that FENCEPOST_TEST_DATABASE_URL names, or else a throwaway cluster. Tests never skip for lack of
// one: where no server can be had they fail and say what to do.
//
// # How the processes of one run share a cluster
//
// The go command runs each package's tests as a process of its own, with no parent of ours that could own the cluster.
// So the first process to need it starts a host: its own test binary once more, in the background, which starts the
// cluster, writes the address to a file in the temporary folder and waits until nobody uses it. A user is a process that
// holds a shared lock (flock) on that file: the kernel gives it back however the process ends, so a killed test is a user
// who left. The host waits for the exclusive lock, lingers a little because two packages of one run may have a gap between
// them, and if it then gets the lock again, removes file and cluster. Should the host itself be killed, the cluster's
// guard (package pgserver) cleans up, and the next user finds an address that nobody answers at and starts anew.
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/fencepost-go/fencepost/internal/pgserver"
)

// urlVariable names the environment variable with the URL of a server to use, whose role may create databases.
const urlVariable = "FENCEPOST_TEST_DATABASE_URL"

// shared is the server of this process's tests, opened by Main.
var shared *server

// server is a PostgreSQL server to create databases on.
type server struct {
	url      *url.URL
	db       *sql.DB // the maintenance database
	strategy string  // of CREATE DATABASE
}

// Main is to be called from TestMain. It opens the server, runs the tests and exits.
func Main(m *testing.M) {
	if path := os.Getenv(hostVariable); path != "" {
		os.Exit(hostMain(path))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dsn, leave, err := locate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	defer leave()
	shared, err = open(dsn)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	defer shared.db.Close()
	return m.Run()
}

func locate() (dsn string, leave func() error, err error) {
	if dsn := os.Getenv(urlVariable); dsn != "" {
		return dsn, func() error { return nil }, nil
	}
	dsn, leave, err = join()
	if errors.Is(err, pgserver.ErrNoBinaries) {
		err = fmt.Errorf("%w\n  - or set %s to the postgres:// URL of a server whose role may create databases", err, urlVariable)
	}
	return dsn, leave, err
}

func open(dsn string) (*server, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the server's address is not a postgres:// URL") // which may hold a password
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4) // the rest is for the tests
	s := &server{url: u, db: db}
	// To copy files is what 14 does, and a third of the cost of logging every block, which is the default since 15.
	var choice bool
	if err := db.QueryRow("SELECT current_setting('server_version_num')::int >= 150000").Scan(&choice); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if choice {
		s.strategy = " STRATEGY FILE_COPY"
	}
	return s, nil
}

// dsn returns the URL of one of the server's databases.
func (s *server) dsn(database string) string {
	u := *s.url
	u.Path = "/" + database
	return u.String()
}

// New returns the URL of a database with fencepost's schema, in the form that pgx and lib/pq both read. The database is
// this test's alone and is dropped when the test ends.
func New(t testing.TB) string {
	t.Helper()
	template, err := template()
	if err != nil {
		t.Fatal("pgtest: migrate the template: ", err)
	}
	return create(t, template)
}

// Empty is New without the schema.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// Alone is New on a throwaway server that no other test uses, of which the URL's role is the superuser. A snapshot is as old as the oldest
// transaction that writes in any database of the server, and what it can see stays: this is for a test that measures what is removed.
func Alone(t testing.TB) string {
	t.Helper()
	cluster, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error("pgtest: ", err)
		}
	})
	if err := migrate(t.Context(), cluster.DSN()); err != nil {
		t.Fatal("pgtest: ", err)
	}
	return cluster.DSN()
}

// Copy is New with what the database of the URL holds, which nobody may be connected to by now.
func Copy(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	return create(t, strings.TrimPrefix(u.Path, "/"))
}

func create(t testing.TB, template string) string {
	t.Helper()
	if shared == nil {
		t.Fatal("pgtest: TestMain does not call pgtest.Main")
	}
	name := "fencepost_test_" + random()
	if err := execute("CREATE DATABASE " + name + " TEMPLATE " + template + shared.strategy); err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() {
		if err := execute("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error("pgtest: ", err)
		}
	})
	return shared.dsn(name)
}

// execute runs a statement on the maintenance database. The test's own context has ended when it cleans up.
func execute(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := shared.db.ExecContext(ctx, statement)
	return err
}

func random() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}

// Binaries returns the folder of the server's binaries, for tests that run one of its programs.
func Binaries() (string, error) { return pgserver.Binaries() }
