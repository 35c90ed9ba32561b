package sidecar

import "time"

// Exit codes of a command; see sysexits.h. Every other one but 0, and an end by a signal, is a failure that the policy retries.
const (
	ExitPermanent   = 65 // EX_DATAERR: trying again cannot help
	ExitUnavailable = 69 // EX_UNAVAILABLE: the target was not reached
	ExitRetry       = 75 // EX_TEMPFAIL
)

// MaxSlots is how many commands may run at once: each takes a thread, of which a program has 10,000 at most.
const MaxSlots = 1000

// Config of a Command.
type Config struct {
	// Args are the command, a path or a name to be found in PATH, and its arguments.
	Args []string
	// Environ is what the command inherits; see Inherit.
	Environ []string
	// Grace is how long a group has between SIGTERM and SIGKILL.
	Grace time.Duration
	// KeepOutput makes the end of what a command prints the result of a delivery. Without it the standard output is discarded.
	KeepOutput bool
	// Redact takes secrets of at most 1 KiB out of what a command printed, before that is cut. Nil leaves it as it is.
	Redact func(string) string
	// Guard is the command line of a process that calls Stand.
	Guard []string
}
