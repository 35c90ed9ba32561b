package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/schemaname"
	"github.com/fencepost-go/fencepost/schema"
)

func newGrants() *cobra.Command {
	name, prefix := schemaname.Default, ""
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Print the SQL that makes roles and gives them their rights",
		Long: `Print the SQL that makes a role for each part of a system (migrator, producer, sender, operator, janitor, viewer,
and repair, which may do nothing) and gives it the rights of that part and no more. It needs no connection and changes
nothing: read it, and run it as with psql -v ON_ERROR_STOP=1 after each migration, as often as you like.

SQLite has no roles. The roles have no login: give them to those with which your programs log in.`,
		Example: `  fencepost grants | less
  fencepost grants --schema billing --role-prefix billing_outbox_
  fencepost grants | psql -v ON_ERROR_STOP=1 "$FENCEPOST_DSN"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := noJSON(cmd); err != nil {
				return err
			}
			if strings.HasPrefix(os.Getenv(dsnVariable), filePrefix) {
				return usagef("%s names a file of SQLite, which has no roles: who may use it is up to its permissions", dsnVariable)
			}
			return schema.Grants(cmd.OutOrStdout(), schema.Config{Name: name, RolePrefix: prefix})
		},
	}
	cmd.Flags().Var(schemaFlag{&name}, "schema", "schema of the tables")
	cmd.Flags().Var(prefixFlag{schemaFlag{&prefix}}, "role-prefix", "what the names of the roles begin with (default the schema and _)")
	return cmd
}

// prefixFlag is a flag's beginning of the names of roles.
type prefixFlag struct{ schemaFlag }

func (f prefixFlag) Set(text string) error {
	for _, role := range schema.Roles() {
		if schemaname.Validate(text+role) != nil {
			return usagef("must be letters, digits, _ and -, at most 63 with the role, and not begin as a name of PostgreSQL's own")
		}
	}
	*f.value = text
	return nil
}
