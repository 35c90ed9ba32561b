//go:build !unix

package pgserver

import "os/exec"

// detach does nothing here: a throwaway server needs a Unix, but the command that offers one builds everywhere.
func detach(*exec.Cmd, *account) {}
