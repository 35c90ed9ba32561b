package sidecar

import (
	"os"
	"syscall"
)

// apart makes a process the leader of a group, which dies with the thread that started it.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits for a process and leaves it a zombie until reap is called.
func awaitExit(process *os.Process) (reap func() (*os.ProcessState, error)) {
	const idIsPID = 1
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, idIsPID, uintptr(process.Pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if err != syscall.EINTR {
			return process.Wait
		}
	}
}
