//go:build unix

package sidecar

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// The test binary is also the processes around a command, by its first argument.
const (
	asGuard   = "be-guard"
	asWorker  = "be-worker"  // of the script and the FIFO that follow
	asStarter = "be-starter" // the same, which does not get to tell the guard of the group
	asDaemon  = "be-daemon"  // leaves the group and holds what it inherited
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asGuard:
			Stand(os.Stdin)
			syscall.Exit(0) // at once: the race detector lingers at the end of a program
		case asWorker:
			beWorker(os.Args[2], os.Args[3])
			return
		case asStarter:
			beStarter(os.Args[2], os.Args[3])
			return
		case asDaemon:
			beDaemon()
			return
		}
	}
	os.Exit(m.Run())
}

func beWorker(script, fifo string) {
	c, err := New(Config{Args: []string{"sh", "-c", script, fifo}, Environ: os.Environ(), Grace: time.Minute, Guard: []string{self(), asGuard}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, err = c.Do(context.Background(), message())
	fmt.Fprintln(os.Stderr, "the command ended:", err)
}

func beStarter(script, fifo string) {
	g, err := startGuard([]string{self(), asGuard})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	runtime.LockOSThread()
	_, err = g.start(func(mark string) (*os.Process, error) {
		cmd := exec.Command("sh", "-c", script, fifo)
		cmd.Env = append(os.Environ(), markVariable+"="+mark)
		cmd.SysProcAttr = apart()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return cmd.Process, cmd.Wait()
	})
	fmt.Fprintln(os.Stderr, "the command ended:", err)
}

func beDaemon() {
	cmd := exec.Command("sleep", "600")
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func message() outbox.Message {
	return outbox.Message{
		ID: 17, Tenant: "acme", Consumer: "shop", Target: "bank", Kind: "charge", Key: "order-1", OrderKey: "customer-7", Payload: []byte("{}"),
		Attempt: 2, Epoch: 3, LeasedUntil: time.Date(2026, 1, 31, 10, 15, 0, 500, time.FixedZone("", 3600)),
	}
}

// newCommand makes a command that ends with the test.
func newCommand(t *testing.T, config Config) *Command {
	t.Helper()
	config.Guard = []string{self(), asGuard}
	if config.Environ == nil {
		config.Environ = os.Environ()
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// shell makes a command of a script.
func shell(t *testing.T, script string, args ...string) *Command {
	t.Helper()
	return newCommand(t, Config{Args: append([]string{"sh", "-c", script}, args...), Grace: time.Minute, KeepOutput: true})
}

// A vigil tells when the last process is gone that holds a FIFO.
type vigil struct {
	*testing.T
	path string
	file *os.File
}

// keepVigil makes the FIFO. A script opens it by exec 3>"$0", and writes a line when it is ready.
func keepVigil(t *testing.T) *vigil {
	t.Helper()
	v := &vigil{T: t, path: filepath.Join(t.TempDir(), "fifo")}
	if err := syscall.Mkfifo(v.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// ready waits for the line.
func (v *vigil) ready() string {
	v.Helper()
	var err error
	if v.file, err = os.Open(v.path); err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { v.file.Close() })
	if err := v.file.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		v.Fatal(err)
	}
	var line string
	if _, err := fmt.Fscanln(v.file, &line); err != nil {
		v.Fatal(err)
	}
	return line
}

// over waits for the end of them all and gives what they wrote since.
func (v *vigil) over() string {
	v.Helper()
	rest, err := io.ReadAll(v.file)
	if err != nil {
		v.Errorf("still there: %v", err)
	}
	return strings.TrimSpace(string(rest))
}

// stubborn is a script whose processes, three generations of them, ignore SIGTERM.
const stubborn = `exec 3>"$0"; trap '' TERM; sh -c 'sleep 600 & sleep 600' & echo ready >&3; wait`
