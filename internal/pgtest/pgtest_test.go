package pgtest

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgserver"
)

// userVariable tells the test binary to be a process that uses the shared cluster until it is killed.
const userVariable = "FENCEPOST_PGTEST_USER"

func TestMain(m *testing.M) {
	if os.Getenv(userVariable) != "" && os.Getenv(hostVariable) == "" {
		dsn, leave, err := join()
		fmt.Println(dsn, err)
		io.ReadAll(os.Stdin)
		leave()
		return
	}
	Main(m)
}

func TestClones(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			db := connect(t, New(t))
			// Fails where another clone's table shows.
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE mine AS SELECT FROM outbox.message"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	var count int
	row := connect(t, Empty(t)).QueryRowContext(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = 'outbox'")
	if err := row.Scan(&count); err != nil || count != 0 {
		t.Errorf("got %d schemas, %v", count, err)
	}
}

func TestDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	var dsn string
	t.Run("test", func(t *testing.T) {
		dsn = Empty(t)
		connect(t, dsn) // stays open: the drop ends it
	})
	if err := connect(t, dsn).PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("connecting to the dropped database: %v", err)
	}
}

func TestTemplateOfADeadBuilder(t *testing.T) {
	t.Parallel()
	conn, err := shared.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	name := "fencepost_half_" + random()
	if err := execute("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute("ALTER DATABASE " + name + " IS_TEMPLATE false"); err != nil {
			t.Error(err)
		}
		if err := execute("DROP DATABASE " + name); err != nil {
			t.Error(err)
		}
	})
	if err := build(t.Context(), conn, name); err != nil {
		t.Fatal(err)
	}
	create(t, name)
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	path := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(path, []byte("postgres://postgres@"+silent.Addr().String()+"/postgres?sslmode=disable"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := lock(path, syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if dsn, ok := answering(file, 100*time.Millisecond); ok {
		t.Errorf("a server answers at %s", dsn)
	}
}

// Two processes share a cluster; when both are killed, it is gone without a trace.
func TestSharedAndRemovedAfterKill(t *testing.T) {
	t.Parallel()
	if _, err := pgserver.Binaries(); err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir, where the server's account may neither enter nor remove.
	dir, err := os.MkdirTemp("", "fp-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	firstUser, first := startUser(t, dir)
	secondUser, second := startUser(t, dir)
	if !strings.HasPrefix(first, "postgres://") || first != second {
		t.Errorf("two processes got %q and %q", first, second)
	}
	for _, user := range []*exec.Cmd{firstUser, secondUser} {
		user.Process.Kill()
		user.Wait()
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("left behind: %v", entries)
		}
	}
}

// startUser returns a process that uses the cluster of the folder, and the address it got.
func startUser(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	user := exec.Command(os.Args[0])
	user.Env = append(os.Environ(), userVariable+"=1", "TMPDIR="+dir)
	if _, err := user.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := user.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return user, line
}

func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
