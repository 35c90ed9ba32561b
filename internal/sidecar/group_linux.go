package sidecar

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
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

// killStarted kills the processes with a mark, which a worker started last. Until the worker is gone with all its threads the kernel may not have
// killed the command yet, which may go on starting others; and one look can miss a process that another started during it.
func killStarted(worker int, mark string) {
	pause := time.Millisecond
	for clean := 0; clean < 2; pause = min(2*pause, time.Second) {
		gone := syscall.Getppid() != worker
		if killMarked(mark) || !gone {
			clean = 0
		} else {
			clean++
		}
		time.Sleep(pause)
	}
}

// killMarked says whether there was anything to kill. What was killed keeps its environment for an instant.
func killMarked(mark string) (found bool) {
	variable := []byte(markVariable + "=" + mark)
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, variable) {
			continue // it has ended, or is another user's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		found = err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil || found
	}
	return found
}
