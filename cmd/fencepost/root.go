package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "fencepost",
		Short: "Look after durable effects in PostgreSQL or SQLite",
		Long: `fencepost looks after durable effects in PostgreSQL or SQLite.

Connection: --dsn takes a URL (postgres://user@host:5432/database), keywords (host=… user=… dbname=…), or the path of
a file after sqlite: (sqlite:shop.db), which only migrate makes. Without it the environment variable
FENCEPOST_DSN is used. Other users of the machine can read a command line, so keep passwords in FENCEPOST_DSN,
PGPASSWORD or ~/.pgpass. No password is ever printed.

Output: a table for people, with colours on a terminal unless NO_COLOR is set; with --json one JSON document, in
which ids are strings (of tail one a line). Scripts (grants, completion, migrate --print) have no such form.

Exit codes: 0 done; 1 failed, or interrupted; 2 the command line or the configuration is wrong, and nothing was
done; 3 something that was asked for was not there to be done: nothing matched, no such message, or one that is not
in the state that the command needs (not dead, not parked, settled already), or of a purge its turn, while another
janitor is at work. What could be done is done then.`,
		Example: `  fencepost migrate --dsn postgres://app@db.internal/shop
  FENCEPOST_DSN=postgres://app@db.internal/shop fencepost status
  fencepost migrate --dsn sqlite:shop.db
  fencepost demo`,
		Args:              noCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		// Also for a word that is off by two letters.
		SuggestionsMinimumDistance: 2,
	}
	root.PersistentFlags().Bool("json", false, "print JSON")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newMigrate(), newStatus(), newList(), newShow(), newTail(), newRetries(),
		newReplay(), newResolve(), newCancel(), newPause(), newResume(), newRelease(), newUnblock(), newEnqueue(), newWork(), newWorker(),
		newEvents(), newLedger(), newBatch(), newPurge(), newMove(), newGrants(), newDoctor(), newDemo(), newVersion(), newGuard(), newCompletion())
	completeWords(root)
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show the help of a command",
		Example: "  fencepost help list",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), args[0])
			}
			return found.Help()
		},
	}
}

// noCommand refuses what the root command is left with: words that name no command.
func noCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(root, args[0])
	}
	return nil
}

// word is an argument that may be repeated in a message: a name, not a connection string.
var word = regexp.MustCompile(`^[a-z][a-z-]{0,30}$`)

func unknownCommand(root *cobra.Command, name string) error {
	if !word.MatchString(name) {
		return usagef("unknown command; see fencepost --help")
	}
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return usagef("unknown command %s; did you mean %s?", name, strings.Join(near, " or "))
	}
	return usagef("unknown command %s; see fencepost --help", name)
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// flagError puts what the flag library found into our words, without the value.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var lacking *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && word.MatchString(unknown.GetSpecifiedName()):
		return usagef("unknown flag --%s; see %s --help", unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &lacking):
		return usagef("--%s needs a value", lacking.GetFlag().Name)
	case errors.As(err, &invalid) && errors.As(err, new(*usageError)):
		return usagef("--%s %v", invalid.GetFlag().Name, invalid.Unwrap())
	case errors.As(err, &invalid):
		return usagef("--%s has a value that is no %s", invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	default:
		return usagef("unknown flag; see %s --help", cmd.CommandPath())
	}
}
