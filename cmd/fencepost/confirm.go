package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// confirm asks the person at the terminal. No answer at all (the input is at its end) is like no terminal.
func confirm(cmd *cobra.Command, question string) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", printable(question))
	select {
	case answer, ok := <-readLines(cmd.Context(), cmd.InOrStdin(), 1<<10):
		if !ok || answer.err != nil {
			fmt.Fprintln(cmd.ErrOrStderr())
			return errUnconfirmed
		}
		if word := strings.ToLower(strings.TrimSpace(string(answer.text))); word != "y" && word != "yes" {
			return notDonef("nothing was done")
		}
		return nil
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return cmd.Context().Err()
	}
}

var errUnconfirmed = usagef("this acts on all that matches and nobody is there to confirm it: look with --dry-run, then add --yes")
