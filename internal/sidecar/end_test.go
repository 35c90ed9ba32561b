//go:build unix

package sidecar

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// begin runs a script until it is ready; end ends its context.
func begin(t *testing.T, v *vigil, grace time.Duration, script string) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	c := newCommand(t, Config{Args: []string{"sh", "-c", script, v.path}, Grace: grace})
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, message())
		done <- err
	}()
	v.ready()
	return func() error {
		cancel(outbox.ErrCancelled)
		return <-done
	}
}

// The whole group is gone when Do returns, however its processes take a SIGTERM.
func TestTheGroupEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script, reason, said string
		grace                time.Duration
	}{
		"obedient":  {`exec 3>"$0"; sleep 600 & echo ready >&3; wait`, "message cancelled: signal: terminated", "", time.Minute},
		"stubborn":  {stubborn, "message cancelled: signal: killed", "", 200 * time.Millisecond},
		"at once":   {stubborn, "message cancelled: signal: killed", "", 0},
		"orphaned":  {`exec 3>"$0"; (trap '' TERM; echo ready >&3; sleep 600) & wait`, "message cancelled: signal: terminated", "", 200 * time.Millisecond},
		"tidying":   {`exec 3>"$0"; trap 'echo tidied >&3; exit 3' TERM; echo ready >&3; while :; do sleep 0.01; done`, "message cancelled: exit status 3", "tidied", time.Minute},
		"permanent": {`exec 3>"$0"; trap 'exit 65' TERM; echo ready >&3; while :; do sleep 0.01; done`, "message cancelled: exit status 65", "", time.Minute},
		"delivered": {`exec 3>"$0"; trap 'exit 0' TERM; echo ready >&3; while :; do sleep 0.01; done`, "", "", time.Minute},
		// The shell dies at once, and what it started gets the grace.
		"wrapped": {`exec 3>"$0"; sh -c 'trap "sleep 0.2; echo tidied >&3; exit" TERM; echo ready >&3; while :; do sleep 0.01; done'; :`,
			"message cancelled: signal: terminated", "tidied", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := keepVigil(t)
			end := begin(t, v, test.grace, test.script)
			began := time.Now()
			outcome := outbox.OutcomeOf(end())
			reason := strings.TrimSuffix(outcome.Reason(), ": Terminated") // a shell says of what it waited for
			if reason != test.reason || test.reason == "" && outcome.Verdict() != outbox.VerdictDelivered {
				t.Errorf("%v, %q", outcome.Verdict(), reason)
			}
			if took := time.Since(began); took < test.grace && test.grace < time.Minute || took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if said := v.over(); said != test.said {
				t.Errorf("it said %q", said)
			}
		})
	}
}

// The group does not outlive a worker that is killed, be it before the guard was told of the group.
func TestTheGroupEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	ways := []string{asWorker}
	if runtime.GOOS == "linux" { // elsewhere a guard cannot find it
		ways = append(ways, asStarter)
	}
	for _, as := range ways {
		t.Run(as, func(t *testing.T) {
			t.Parallel()
			v := keepVigil(t)
			worker := exec.Command(self(), as, stubborn, v.path)
			worker.Stderr = os.Stderr
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			v.ready()
			if err := worker.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = worker.Wait()
			v.over()
		})
	}
}

// Without its guard a command performs nothing more, and says so.
func TestUnguarded(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Args: []string{"sh", "-c", "exit 0"}, Guard: []string{"sh", "-c", "read line; exit 1"}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Do(t.Context(), message())
	<-c.Unguarded()
	if _, err := c.Do(t.Context(), message()); outbox.OutcomeOf(err).Verdict() != outbox.VerdictUnavailable || !strings.Contains(err.Error(), "guard") {
		t.Error(err)
	}
	c.Close()
	if _, err := New(Config{Args: []string{"true"}, Guard: []string{"/no/such/guard"}}); err == nil {
		t.Error("no guard")
	}
}

// A guard is deaf to what a terminal or a service manager sends to all, and takes no number for a group that is none.
func TestGuard(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(self(), asGuard)
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := func() *exec.Cmd {
		sleeper := exec.Command("sleep", "600")
		sleeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sleeper.Process.Kill() })
		return sleeper
	}
	watched, forgotten := group(), group()
	g := guard{to: to}
	for _, process := range []*os.Process{watched.Process, forgotten.Process, {Pid: 0}, {Pid: 1}, {Pid: -1}} {
		if _, err := g.start(func(string) (*os.Process, error) { return process, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.start(func(string) (*os.Process, error) { return nil, syscall.E2BIG }); !errors.Is(err, syscall.E2BIG) {
		t.Error(err)
	}
	g.forget(forgotten.Process.Pid)
	to.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err := watched.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Error(err)
	}
	if err := forgotten.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the forgotten group: %v", err)
	}
}
