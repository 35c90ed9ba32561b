package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/demo"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// program prepares a process that runs the command, and whose children do too.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(executable, args...)
	cmd.Env = append(os.Environ(), commandVariable+"=1")
	return cmd
}

// Beside the full run, make demo-postgres shows the demo on PostgreSQL.
func TestDemo(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { testDemo(t) })
	if os.Getenv("FENCEPOST_FULL") != "" {
		t.Run("PostgreSQL", func(t *testing.T) { testDemo(t, "--postgres", "--dsn", pgtest.Empty(t)) })
	}
}

func testDemo(t *testing.T, flags ...string) {
	t.Parallel()
	cmd := program(t, append([]string{"demo", "--effects", "400", "--json"}, flags...)...)
	cmd.Env = append(cmd.Env, "PATH=") // neither a server nor anything else is looked for
	var progress bytes.Buffer
	cmd.Stderr = &progress
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var r demo.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !r.OK() || r.Enqueued != 400 || r.Delivered != 400 || r.Dead != 1 || r.Replayed != 1 {
		t.Errorf("report %+v\n%s", r, &progress)
	}
	if r.Retried == 0 || r.Duplicates == 0 || r.Held == 0 {
		t.Errorf("nothing went wrong: %+v", r)
	}
	for _, want := range []string{"is paused", "rolls back", "is killed", "is resumed", "is dead", "replayed: 1"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("no %q in\n%s", want, &progress)
		}
	}
}

func TestDemoReport(t *testing.T) {
	t.Parallel()
	p := page{}
	demoReport{demo.Report{
		Seed: 1, Orders: 1000, Enqueued: 2000, Delivered: 2000, Retried: 155, Dead: 1, Replayed: 1, Duplicates: 50, Held: 55,
		Events: 1000, Booked: 1000, Seconds: 13,
	}}.text(&p)
	golden(t, "demo", p.String())
}

// However a demo ends, no worker, no server and no file stay behind.
func TestDemoLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		flags  []string
	}{
		{"Ctrl-C", syscall.SIGINT, nil},
		{"killed", syscall.SIGKILL, nil},
		{"pgint", syscall.SIGINT, []string{"--postgres"}},
		{"pgkill", syscall.SIGKILL, []string{"--postgres"}},
	} {
		if test.flags != nil && os.Getenv("FENCEPOST_FULL") == "" {
			continue // package pgserver's tests see to servers
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			files := publicDir(t)
			cmd := program(t, append([]string{"demo", "--effects", "4000"}, test.flags...)...)
			cmd.Env = append(cmd.Env, "TMPDIR="+files)
			// Every process that comes of the demo inherits this end of a pipe; it is closed when the last has ended.
			ended, held, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer ended.Close()
			cmd.ExtraFiles = []*os.File{held}
			progress, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(cmd.Start(), held.Close()); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(progress)
			var said []string
			for lines.Scan() {
				said = append(said, lines.Text())
				if strings.Contains(lines.Text(), "worker-2 and worker-3 take over") {
					cmd.Process.Signal(test.signal)
				}
			}
			cmd.Wait()
			if test.signal == syscall.SIGINT && (cmd.ProcessState.ExitCode() != exitFailed || said[len(said)-1] != "fencepost: interrupted") {
				t.Errorf("code %d\n%s", cmd.ProcessState.ExitCode(), strings.Join(said, "\n"))
			}
			err = ended.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, readErr := io.ReadAll(ended); err != nil || readErr != nil {
				t.Errorf("wait for all processes to end: %v, %v", err, readErr)
			}
			await(t, "the database to be removed", func() bool {
				left, err := os.ReadDir(files)
				return err == nil && len(left) == 0
			})
		})
	}
}

// publicDir is a folder for temporary files of every account, as /tmp is: the server runs under another when we are root.
func publicDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// await waits for what another process does.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
