//go:build unix

package pgserver

import (
	"os/exec"
	"syscall"
)

// detach puts the command into a session of its own, so that an interrupt typed at our terminal does not reach it, and
// into a folder that every account may enter.
func detach(cmd *exec.Cmd, as *account) {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
}
