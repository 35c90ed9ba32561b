//go:build unix

package sidecar

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/outbox"
)

// A Command performs messages. Make one with New; it may perform several at once.
type Command struct {
	path       string
	args       []string
	environ    []string
	grace      time.Duration
	keepOutput bool
	redact     func(string) string
	guard      *guard
}

// New finds the command and starts the guard. What it says of a command that cannot be run does not repeat its name.
func New(config Config) (*Command, error) {
	if len(config.Args) == 0 {
		return nil, errors.New("no command")
	}
	path, err := exec.LookPath(config.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, unnamed(err)
	}
	g, err := startGuard(config.Guard)
	if err != nil {
		return nil, err
	}
	return &Command{
		path: path, args: config.Args, environ: slices.Clip(config.Environ),
		grace: config.Grace, keepOutput: config.KeepOutput, redact: config.Redact, guard: g,
	}, nil
}

// unnamed is an error without the path that it is about.
func unnamed(err error) error {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		err = lookup.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err
}

// Unguarded is closed when the guard has ended, which nobody but Close asked it to: no further message should be performed.
func (c *Command) Unguarded() <-chan struct{} { return c.guard.gone }

// Close ends the guard, and with it every command that still runs.
func (c *Command) Close() { c.guard.close() }

// Do performs a message, as a sender.Handler's DoResult. When ctx ends the command has the grace to end in; Do returns soon after it.
func (c *Command) Do(ctx context.Context, m outbox.Message) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	environ, err := Environ(m)
	if err != nil {
		return "", outbox.Permanent(err)
	}
	runtime.LockOSThread() // the death of the thread that started a process is taken for that of the worker
	defer runtime.UnlockOSThread()
	p, err := c.start(append(c.environ, environ...), m.Payload)
	if err != nil {
		return "", notStarted(err)
	}
	interrupted := p.await(ctx, c.grace)
	c.guard.forget(p.group)
	state, err := p.reap()
	p.streams.drain()
	if err != nil {
		return "", err
	}
	if err := c.outcome(state, interrupted, &p.streams.errors.tail); err != nil || !c.keepOutput {
		return "", err
	}
	return p.streams.output.text(c.redact, bounds.Reason), nil
}

// start starts the command in a group of its own, which the guard knows of.
func (c *Command) start(environ []string, payload []byte) (*performance, error) {
	streams, err := openStreams(c.keepOutput)
	if err != nil {
		return nil, err
	}
	process, err := c.guard.start(func(mark string) (*os.Process, error) {
		attr := os.ProcAttr{Env: append(environ, markVariable+"="+mark), Files: streams.theirs[:], Sys: apart()}
		return os.StartProcess(c.path, c.args, &attr)
	})
	closeAll(streams.theirs[:]...)
	if err != nil {
		streams.close()
		return nil, err
	}
	streams.converse(payload)
	return &performance{process: process, group: process.Pid, streams: streams}, nil
}
