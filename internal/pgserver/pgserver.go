// Package pgserver runs a throwaway PostgreSQL server: a cluster of its own in a temporary folder (of TMPDIR, when set), on a free port of the
// loopback interface, that disappears with whoever started it.
//
// The promise to disappear must also hold when the owner is killed and can run no code. So each cluster has a guard: a
// shell that does nothing but read from a pipe whose other end only the owner holds. The kernel closes that end however
// the owner dies; the guard then stops the server and removes the folder. Stop is nothing but closing the pipe.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Options of a cluster.
type Options struct {
	// Durable keeps fsync and its companions on, as a real server has them. Off, a crash of the machine (not of the
	// server) may corrupt the cluster, which costs a test nothing and makes it several times faster; nor is anything compiled just in time.
	Durable bool
}

// Cluster is a running server. Its superuser is postgres, without a password, from loopback only.
type Cluster struct {
	Port int

	bin     string
	dir     string
	account *account
	guard   *exec.Cmd
	leash   io.Closer // the guard acts when this is closed
}

// Start makes a cluster and returns once it accepts connections. The context bounds the start only.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	bin, err := Ensure(ctx)
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(place(options), "fencepost-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir, account: account}
	if err := c.startGuard(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.create(ctx, options); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// place returns the folder to make a cluster in. What is not durable goes into memory where it may: to make and remove the files of a database,
// a few hundred, costs several times as much on disk.
func place(options Options) string {
	if options.Durable || os.Getenv("TMPDIR") != "" {
		return "" // the usual
	}
	return inMemory()
}

// DSN returns a URL of the maintenance database, in the form that pgx and lib/pq both read.
func (c *Cluster) DSN() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", c.Port)
}

// Restart stops the server in pg_ctl's mode "smart", "fast" or "immediate" (a crash) and starts it on the same port.
func (c *Cluster) Restart(mode string) error {
	return c.run(context.Background(), "pg_ctl", "restart", "-D", c.data(), "-l", c.log(), "-m", mode, "-w")
}

// Halt stops the server in one of these modes and keeps the cluster; Resume starts it again on the same port.
func (c *Cluster) Halt(mode string) error {
	return c.run(context.Background(), "pg_ctl", "stop", "-D", c.data(), "-m", mode, "-w")
}

// Resume starts a halted server.
func (c *Cluster) Resume() error { return c.start(context.Background()) }

func (c *Cluster) start(ctx context.Context) error {
	return c.run(ctx, "pg_ctl", "start", "-D", c.data(), "-l", c.log(), "-o", "-p "+strconv.Itoa(c.Port), "-w")
}

// Stop ends the server and removes its folder. To be called once.
func (c *Cluster) Stop() error {
	return errors.Join(c.leash.Close(), c.guard.Wait())
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }
func (c *Cluster) log() string  { return filepath.Join(c.dir, "log") }

const guardScript = `read -r _; "$0/pg_ctl" stop -D "$1/data" -m immediate -s; rm -rf -- "$1"`

func (c *Cluster) startGuard() error {
	if c.account != nil {
		if err := os.Chown(c.dir, c.account.uid, c.account.gid); err != nil {
			return err
		}
	}
	c.guard = exec.Command("sh", "-c", guardScript, c.bin, c.dir)
	detach(c.guard, c.account)
	leash, err := c.guard.StdinPipe()
	if err != nil {
		return err
	}
	c.leash = leash
	return c.guard.Start()
}

func (c *Cluster) create(ctx context.Context, options Options) error {
	err := c.run(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return err
	}
	if err := c.configure(options); err != nil {
		return err
	}
	// Somebody else may take the free port before the server does.
	for range 3 {
		if c.Port, err = freePort(); err != nil {
			return err
		}
		err = c.start(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	log, _ := os.ReadFile(c.log())
	return fmt.Errorf("%w\n%s", err, log)
}

func (c *Cluster) configure(options Options) error {
	settings := fmt.Sprintf(`
listen_addresses = '127.0.0.1'
unix_socket_directories = '%s'
max_connections = 300
shared_buffers = '256MB'
timezone = 'UTC'
log_timezone = 'UTC'
`, c.dir)
	if !options.Durable {
		settings += `
fsync = off
synchronous_commit = off
full_page_writes = off
jit = off
`
	}
	file, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(settings)
	return errors.Join(err, file.Close())
}

// run runs one of the server's programs as the account that owns the cluster.
func (c *Cluster) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	detach(cmd, c.account)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
