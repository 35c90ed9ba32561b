package sqlitedb_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// The test binary runs itself once more where a test needs another process: the first variable names its file, the second what it does.
const (
	childFile = "FENCEPOST_SQLITE_CHILD"
	childRole = "FENCEPOST_SQLITE_ROLE"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		if err := childMain(path, os.Getenv(childRole)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childMain does its work until its standard input ends. Each line it prints is one write, after what it tells of is committed.
func childMain(path, role string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	store, err := sqlitedb.Open(path, sqlitedb.Config{MustExist: true})
	if err != nil {
		return err
	}
	defer store.Close()
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	consumer, err := box.Consumer("c", "t", outbox.Policy{})
	if err != nil {
		return err
	}
	work := map[string]func() error{
		"produce": func() error { return order(ctx, store, box) },
		"send":    func() error { return send(ctx, box, consumer) },
		"keep":    func() error { return keep(ctx, box) },
		"churn":   func() error { return churn(ctx, store, box, consumer) },
	}[role]
	for ctx.Err() == nil {
		if err := work(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// order commits a business row and its effect together, and tells of it.
func order(ctx context.Context, store *sqlitedb.Store, box *outbox.Box) error {
	key := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	err := sqlitedb.InTx(ctx, store, box, func(tx *sqlitedb.BoxTx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO business (key) VALUES (?)", key); err != nil {
			return err
		}
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: key})
		return err
	})
	if err == nil {
		fmt.Println("stored", key)
	}
	return err
}

func send(ctx context.Context, box *outbox.Box, consumer *outbox.Consumer) error {
	s, err := sender.New(box, consumer, sender.Config{Poll: 100 * time.Millisecond, Handlers: sender.Handlers{
		"k": {Do: func(_ context.Context, m outbox.Message) error {
			fmt.Println("handled", m.Key)
			return nil
		}},
	}})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func keep(ctx context.Context, box *outbox.Box) error {
	j, err := janitor.New(box, janitor.Config{Every: time.Second, Measure: time.Second, Scope: outbox.AllTenants})
	if err != nil {
		return err
	}
	_, err = j.RunOnce(ctx)
	return err
}

// churn stores a message and delivers what it can lease.
func churn(ctx context.Context, store *sqlitedb.Store, box *outbox.Box, consumer *outbox.Consumer) error {
	if err := order(ctx, store, box); err != nil {
		return err
	}
	messages, err := box.Lease(ctx, consumer, outbox.LeaseRequest{Kinds: []string{"k"}, Limit: 2, For: time.Minute})
	if err != nil {
		return err
	}
	for _, m := range messages {
		result, err := box.Settle(ctx, consumer, outbox.Scope{}, m, outbox.Delivered())
		if err != nil {
			return err
		}
		if result.Status == outbox.Acknowledged {
			fmt.Println("delivered", m.Key)
		}
	}
	return nil
}

// A child is such a process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closes with its output
}

func start(t *testing.T, path, role string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childFile+"="+path, childRole+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := &child{cmd, stdin, make(chan string, 100_000)}
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

// end lets the child come to its end, or kills it, and returns what it printed after the lines that were read before.
func (c *child) end(t *testing.T, kill bool) []string {
	t.Helper()
	if kill {
		_ = c.cmd.Process.Kill()
	}
	_ = c.stdin.Close()
	var printed []string
	for line := range c.lines {
		printed = append(printed, line)
	}
	if err := c.cmd.Wait(); err != nil && !kill {
		t.Errorf("the child ended with %v: %q", err, printed[max(0, len(printed)-3):])
	}
	return printed
}
