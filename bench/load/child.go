package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// ChildCommand is the first argument of this program when it is to be nothing but a sender.
const ChildCommand = "child-sender"

// RunChild is that: it connects, says so, begins at a line of its input, tells how many it settled since it last did, and ends with its input.
func RunChild(ctx context.Context, dsn string, in io.Reader, out io.Writer) error {
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, Connections))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	if _, err := fmt.Fprintln(out, 0); err != nil {
		return err
	}
	if !lines.Scan() {
		return lines.Err()
	}
	over := make(chan struct{})
	go func() {
		for lines.Scan() {
		}
		close(over)
	}()
	var settled atomic.Int64
	sending := Sending{Store: store, Settled: func(outbox.Message) { settled.Add(1) }}
	return sending.While(ctx, func(ctx context.Context) error {
		for {
			select {
			case <-over:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * time.Millisecond):
				if n := settled.Swap(0); n > 0 {
					if _, err := fmt.Fprintln(out, n); err != nil {
						return err
					}
				}
			}
		}
	})
}

// A Child is a process of this program that only sends.
type Child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// StartChild returns once it is connected.
func StartChild(ctx context.Context, dsn string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Child{command: exec.CommandContext(ctx, self, ChildCommand, dsn)}
	c.command.Stderr = os.Stderr
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	if !c.out.Scan() {
		return nil, errors.Join(errors.New("a sender's process did not start"), c.command.Wait())
	}
	return c, nil
}

// Begin lets it send; what it settles is counted.
func (c *Child) Begin(settled *Countdown) error {
	if _, err := fmt.Fprintln(c.in, "go"); err != nil {
		return err
	}
	go func() {
		for c.out.Scan() {
			if n, err := strconv.Atoi(c.out.Text()); err == nil {
				settled.Tick(n)
			}
		}
	}()
	return nil
}

// Peak is the most memory that it had so far, in bytes.
func (c *Child) Peak() (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	return peak(string(content))
}

// peak reads VmHWM of proc_pid_status(5).
func peak(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("the kernel tells no peak of memory")
}

// End stops it.
func (c *Child) End() error { return errors.Join(c.in.Close(), c.command.Wait()) }
