package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newCompletion() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands and flags in a shell",
		Long:  "Print a script that completes commands and flags, for " + strings.Join(names, ", ") + ".",
		Example: `  source <(fencepost completion bash)
  fencepost completion zsh > "${fpath[1]}/_fencepost"
  fencepost completion fish > ~/.config/fish/completions/fencepost.fish`,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return usagef("completion takes one of %s", strings.Join(names, ", "))
			}
			if err := noJSON(cmd); err != nil {
				return err
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// completeWords offers the words that flags take, and files only where a command reads one.
func completeWords(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	walk(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if choice, ok := flag.Value.(choiceFlag); ok {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(choice.of, cobra.ShellCompDirectiveNoFileComp))
			}
		})
	})
}

// completeFiles offers files for a flag.
func completeFiles(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}
