package sidecar

import (
	"os"
	"syscall"
)

// apart makes a process the leader of a group, which dies with the thread that started it.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits for the command and leaves it a zombie.
func (p *performance) awaitExit() {
	const idIsPID = 1
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, idIsPID, uintptr(p.group), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if err != syscall.EINTR {
			return
		}
	}
}

func (p *performance) reap() (*os.ProcessState, error) { return p.process.Wait() }
