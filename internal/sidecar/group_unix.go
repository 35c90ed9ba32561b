//go:build unix && !linux

package sidecar

import (
	"os"
	"syscall"
)

// apart makes a process the leader of a group.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits for a process. There is no portable way to leave it a zombie, so for a moment its number could become another's.
func awaitExit(process *os.Process) (reap func() (*os.ProcessState, error)) {
	state, err := process.Wait()
	return func() (*os.ProcessState, error) { return state, err }
}

// killStarted does nothing: there is no portable way to look at the environment of a process.
func killStarted(int, string) {}
