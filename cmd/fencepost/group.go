package main

import (
	"github.com/spf13/cobra"
)

// newGroup is a command that only holds others.
func newGroup(use, short, long, example string, members ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(members...)
	return cmd
}

// walk visits a command and all below it.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, member := range cmd.Commands() {
		walk(member, visit)
	}
}
