//go:build unix

package sidecar

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
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
	starting sync.Mutex
	telling  sync.Mutex
	to       io.WriteCloser
	gone     chan struct{}
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

// start starts a command and makes the guard responsible for its group. The guard hears of the mark in the command's environment before there
// is a group to tell it of, so that it finds the group also when the worker dies in between. Commands start one at a time, as a fork does.
func (g *guard) start(start func(mark string) (*os.Process, error)) (*os.Process, error) {
	mark := rand.Text()
	g.starting.Lock()
	defer g.starting.Unlock()
	if err := g.tell("?%d %s\n", os.Getpid(), mark); err != nil {
		return nil, err
	}
	process, err := start(mark)
	if err != nil {
		return nil, errors.Join(err, g.tell("!\n"))
	}
	if err := g.tell("+%d\n", process.Pid); err != nil {
		_ = syscall.Kill(-process.Pid, syscall.SIGKILL)
		_, _ = process.Wait()
		return nil, err
	}
	return process, nil
}

// forget ends that, before the group's number can become another's.
func (g *guard) forget(group int) { _ = g.tell("-%d\n", group) }

func (g *guard) tell(format string, args ...any) error {
	g.telling.Lock()
	defer g.telling.Unlock()
	if _, err := fmt.Fprintf(g.to, format, args...); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// close waits for a start under way: the guard would look for that command as long as this process lives.
func (g *guard) close() {
	g.starting.Lock()
	g.to.Close()
	g.starting.Unlock()
	<-g.gone
}

// Stand is the main function of a guard. It returns when from, the pipe of its worker, ends, and has then killed every group that is left.
func Stand(from io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // sent to all processes of a service, and the worker may still drain
	var kept charge
	for lines := bufio.NewScanner(from); lines.Scan(); {
		kept.hear(lines.Text())
	}
	for group := range kept.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	if kept.mark != "" {
		killStarted(kept.worker, kept.mark)
	}
}

// A charge is what a guard is responsible for.
type charge struct {
	groups map[int]struct{}
	worker int    // a process
	mark   string // of the command that it is about to start, if it is
}

func (c *charge) hear(line string) {
	if line == "" {
		return
	}
	sign, rest := line[0], line[1:]
	number, mark, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(number)
	switch {
	case sign == '!':
		c.mark = ""
	case err != nil || n <= 1:
	case sign == '?':
		c.worker, c.mark = n, mark
	case sign == '+':
		if c.groups == nil {
			c.groups = map[int]struct{}{}
		}
		c.groups[n], c.mark = struct{}{}, ""
	case sign == '-':
		delete(c.groups, n)
	}
}
