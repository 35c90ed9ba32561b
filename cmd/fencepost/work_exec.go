package main

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost-go/fencepost/internal/sidecar"
)

// executing performs messages by a command.
type executing struct {
	given, keepOutput bool
	grace             time.Duration
	passed            []string
}

func (e *executing) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.given, "exec", false, "perform by the command that follows, with its arguments")
	flags.Var(durationFlag{&e.grace, time.Millisecond, 20 * time.Minute}, "grace",
		"with --exec, the time between SIGTERM and SIGKILL, at most a third of the lease (default 5s or that, whichever is less)")
	flags.BoolVar(&e.keepOutput, "keep-output", false, "with --exec, keep the end of stdout with a delivery, at most 4 KiB")
	flags.StringArrayVar(&e.passed, "pass-env", nil, "with --exec, a variable to hand on although it may be a credential; may be repeated")
}

func (e *executing) name() string { return "exec" }
func (e *executing) chosen() bool { return e.given }

func (e *executing) open(o opening) (performer, error) {
	switch {
	case len(o.args) == 0:
		return performer{}, usagef("--exec needs a command after it")
	case o.unknownOnTimeout && o.timeout == 0:
		return performer{}, usagef("--unknown-on-timeout needs --timeout")
	case slices.ContainsFunc(e.passed, sidecar.Reserved):
		return performer{}, usagef("--pass-env takes none of fencepost's own variables: they are not for the command")
	}
	self, err := os.Executable()
	if err != nil {
		return performer{}, err
	}
	grace := cmp.Or(e.grace, min(5*time.Second, o.lease/3))
	command, err := sidecar.New(sidecar.Config{
		Args:       o.args,
		Environ:    sidecar.Inherit(os.Environ(), o.secrets, e.passed),
		Grace:      grace,
		KeepOutput: e.keepOutput,
		Redact:     o.redact,
		Guard:      []string{self, guardCommand},
	})
	if err != nil {
		return performer{}, usagef("the command of --exec cannot be run: %v", err)
	}
	// On a busy machine it takes a moment until a group that was killed is gone.
	grace = max(grace, min(grace+time.Second, o.lease/3))
	return performer{do: command.Do, grace: grace, broken: command.Unguarded(), close: command.Close}, nil
}

const guardCommand = "guard"

// newGuard is what runs beside a worker with commands.
func newGuard() *cobra.Command {
	return &cobra.Command{
		Use:    guardCommand,
		Hidden: true,
		Args:   noArguments,
		Run:    func(cmd *cobra.Command, _ []string) { sidecar.Stand(cmd.InOrStdin()) },
	}
}
