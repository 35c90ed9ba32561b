// Package sidecar performs messages by running a command for each: the payload on its standard input, what else there is to know in its
// environment, the outcome in its exit code.
//
// A command gets a process group of its own. When its message must not be performed any more the group is sent SIGTERM and, after a grace,
// SIGKILL; when the command ends, what it left in its group is killed. A guard, a process beside the worker, does that when the worker dies by
// SIGKILL. A process that leaves the group, as a daemon does, escapes all of this.
package sidecar
