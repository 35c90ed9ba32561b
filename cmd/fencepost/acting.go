package main

import (
	"os/user"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

// acting is who does something to messages and why; the audit keeps both.
type acting struct{ actor, reason string }

func (a *acting) addFlags(cmd *cobra.Command) {
	cmd.Flags().Var(textFlag{&a.actor}, "actor", "who does this, for the audit (default the user of the operating system)")
	cmd.Flags().Var(textFlag{&a.reason}, "reason", "why, for the audit; required")
}

func (a *acting) by() (outbox.By, error) {
	if a.reason == "" {
		return outbox.By{}, usagef("--reason is required: the audit keeps why this was done")
	}
	actor := a.actor
	if actor == "" {
		current, err := user.Current()
		if err != nil || current.Username == "" {
			return outbox.By{}, usagef("--actor is required: the operating system does not tell who runs this")
		}
		actor = current.Username
	}
	return outbox.By{Actor: actor, Reason: a.reason}, nil
}
