package schema

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/fencepost-go/fencepost/internal/schemaname"
)

// Roles are the parts that Grants makes a role for, each the end of that role's name.
func Roles() []string {
	return []string{"migrator", "producer", "sender", "operator", "janitor", "viewer", "repair"}
}

// Grants writes the SQL that makes a role for each part of a system and gives it the rights of that part and no more: one
// transaction, to be run as with psql -v ON_ERROR_STOP=1 after each migration. What it says at its top is part of this contract.
//
//   - migrator owns the schema; its members may run Up and Down.
//   - producer enqueues. It cannot read content, and cannot lease, settle or remove.
//   - sender leases, renews, settles and reads what it counts. It cannot enqueue or change a message.
//   - operator cancels, replays, resolves, pauses, releases and unblocks, and reads everything.
//   - janitor purges and expires.
//   - viewer reads everything but payloads, metadata, digests, results and tokens.
//   - repair has no access: what a person or a tool gets who is to repair something else.
//
// PUBLIC has nothing. On SQLite, which has no roles, it is refused.
func Grants(w io.Writer, config Config) error {
	in, err := open(nil, config)
	if err != nil {
		return err
	}
	if in.dialect == SQLite {
		return errors.New("schema: SQLite has no roles to grant anything: who may use the file is up to its permissions")
	}
	for _, role := range Roles() {
		if err := schemaname.Validate(in.rolePrefix + role); err != nil {
			return fmt.Errorf("schema: Config.RolePrefix %w", err)
		}
	}
	// In this order: a schema may itself be called outbox_something.
	text := swapRoles(string(must(fs.ReadFile(embedded, "roles/postgres.sql"))), in.rolePrefix)
	_, err = io.WriteString(w, in.rewrite(text))
	return err
}

// swapRoles puts another prefix before the names of roles, which the file quotes: as identifiers and, in its DO block, as strings.
// A valid name ends neither.
func swapRoles(sql, prefix string) string {
	return strings.NewReplacer(`"outbox_`, `"`+prefix, `'outbox_`, `'`+prefix).Replace(sql)
}
