//go:build unix

package sidecar

import (
	"context"
	"os"
	"syscall"
	"time"
)

// A performance is a command that runs.
type performance struct {
	process *os.Process
	group   int
	streams *streams
	reap    func() (*os.ProcessState, error) // after await
}

// await waits for the command to end, and ends it when ctx does: then it answers why. No process of the group is left, and the command itself
// is still to be waited for, so that the group's number is not another's.
func (p *performance) await(ctx context.Context, grace time.Duration) error {
	calm, ended := make(chan struct{}), make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(ended)
		p.signal(syscall.SIGTERM)
		select {
		case <-time.After(grace):
		case <-calm:
		}
		p.signal(syscall.SIGKILL)
	})
	p.reap = awaitExit(p.process)
	if unhook() {
		p.signal(syscall.SIGKILL)
		return nil
	}
	select { // the rest of the group has what is left of the grace
	case <-p.streams.quiet:
	case <-ended:
	}
	close(calm)
	<-ended
	return context.Cause(ctx)
}

// signal sends a signal to the group. That it is gone is no error.
func (p *performance) signal(signal syscall.Signal) { _ = syscall.Kill(-p.group, signal) }
