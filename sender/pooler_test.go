package sender

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// poolerGuard runs a pooler until its input ends, which it does however the test ends.
const poolerGuard = `"$0" "$@" & read -r _; kill $!`

// pooler starts a PgBouncer in transaction mode, with two connections to each database of the server, and gives the database's URL through it.
func pooler(t *testing.T, dsn string) string {
	t.Helper()
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's address is no URL")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "pgbouncer.ini")
	login := "user=" + server.User.Username()
	if password, ok := server.User.Password(); ok {
		login += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`, server.Hostname(), server.Port(), login, address.Port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	program := pgtest.Program(t, "pgbouncer", `"brew install pgbouncer" on macOS`, "pgbouncer", "/usr/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer")
	args := []string{"-c", poolerGuard, program, "-q"}
	if os.Geteuid() == 0 { // which it refuses to be
		args = append(args, "-u", "nobody")
		for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("sh", append(args, config)...)
	leash, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leash.Close()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address.String()); err == nil {
			conn.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the pooler does not answer: ", err)
		}
	}
	server.Host = address.String()
	return server.String()
}
