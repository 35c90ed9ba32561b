//go:build unix && !linux

package sidecar

import (
	"os"
	"syscall"
)

// apart makes a process the leader of a group.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits for the command. There is no portable way to leave it a zombie, so for a moment its number could become another's.
func (p *performance) awaitExit() { p.state, p.failed = p.process.Wait() }

func (p *performance) reap() (*os.ProcessState, error) { return p.state, p.failed }
