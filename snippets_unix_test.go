//go:build unix

package fencepost_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// runCommand stands in docs/guarantees.md too.

func runCommand(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

// A cancelled context ends a command; what the command started ends with it only if its process group is killed.
// Shows: S4.9
func TestCommandEndsWithItsTree(t *testing.T) {
	t.Parallel()
	t.Run("group", func(t *testing.T) {
		t.Parallel()
		tree := grow(t, runCommand)
		tree.cancel()
		if rest, err := io.ReadAll(tree.held); err != nil || len(rest) > 0 {
			t.Errorf("read %q, %v", rest, err)
		}
	})
	t.Run("command alone", func(t *testing.T) {
		t.Parallel()
		tree := grow(t, func(ctx context.Context, name string, args ...string) error {
			return exec.CommandContext(ctx, name, args...).Run()
		})
		tree.cancel()
		<-tree.ended
		if err := syscall.Kill(tree.grandchild, syscall.SIGKILL); err != nil {
			t.Errorf("the command's child did not survive it: %v", err)
		}
	})
}

// A tree is a command with a child of its own.
type tree struct {
	cancel     context.CancelFunc
	ended      chan struct{} // the command
	grandchild int
	held       *os.File // ends when the last process of the tree does
}

func grow(t *testing.T, run func(context.Context, string, ...string) error) tree {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	grown := tree{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(grown.ended)
		_ = run(ctx, "sh", "-c", `exec 3>"$0"; sleep 60 & echo $! >&3; wait`, fifo)
	}()
	var err error
	if grown.held, err = os.Open(fifo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { grown.held.Close() })
	if err := grown.held.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(grown.held, &grown.grandchild); err != nil {
		t.Fatal(err)
	}
	return grown
}
