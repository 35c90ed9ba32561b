//go:build unix

package sidecar

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A guard is a process that outlives a worker which is killed, and then kills the groups of its commands. It is told of them over a pipe, whose
// end is the end of the worker.
type guard struct {
	mu   sync.Mutex
	to   io.WriteCloser
	gone chan struct{}
}

// startGuard starts it in a session of its own, out of reach of what a terminal sends, and with no environment.
func startGuard(args []string) (*guard, error) {
	if len(args) == 0 {
		return nil, errors.New("no guard")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	to, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	g := &guard{to: to, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(g.gone)
	}()
	return g, nil
}

// watch makes it responsible for a group.
func (g *guard) watch(group int) error { return g.tell('+', group) }

// forget ends that, before the group's number can become another's.
func (g *guard) forget(group int) { _ = g.tell('-', group) }

func (g *guard) tell(sign byte, group int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := fmt.Fprintf(g.to, "%c%d\n", sign, group); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

func (g *guard) close() {
	g.to.Close()
	<-g.gone
}

// Stand is the main function of a guard. It returns when from, the pipe of its worker, ends, and has then killed every group that is left.
func Stand(from io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // sent to all processes of a service, and the worker may still drain
	groups := map[int]struct{}{}
	for lines := bufio.NewScanner(from); lines.Scan(); {
		line := lines.Text()
		group, err := strconv.Atoi(strings.TrimLeft(line, "+-"))
		switch {
		case err != nil || group <= 1:
		case line[0] == '+':
			groups[group] = struct{}{}
		default:
			delete(groups, group)
		}
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}
