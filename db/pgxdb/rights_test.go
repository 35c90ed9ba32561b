package pgxdb

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

// rightsGolden says which roles may run each statement.
const rightsGolden = "../../queries/postgres/roles.txt"

// Each statement runs under the roles that are for it and is refused to all others. go test -update writes the golden.
func TestC67WhoMayRunWhat(t *testing.T) {
	t.Parallel()
	as := pgtest.Roles(t, pgtest.New(t))
	may := map[string][]string{}
	for _, role := range schema.Roles() {
		conn := connect(t, as(role))
		for _, name := range statementNames() {
			switch err := try(t, conn, name); {
			case err == nil:
				may[name] = append(may[name], role)
			case !denied(err):
				t.Errorf("%s as %s: %v", name, role, err)
			}
		}
	}
	var lines strings.Builder
	for _, name := range statementNames() {
		lines.WriteString(name + ": " + strings.Join(may[name], ", ") + "\n")
	}
	if *update {
		if err := os.WriteFile(rightsGolden, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if golden, err := os.ReadFile(rightsGolden); err != nil || string(golden) != lines.String() {
		t.Errorf("who may run what changed (%v)\ngolden %s:\n%s\nnow:\n%s", err, rightsGolden, golden, &lines)
	}
}

// try runs a statement in a transaction that is rolled back.
func try(t *testing.T, conn *pgx.Conn, name string) error {
	t.Helper()
	sql, args := statement(t, name)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	rows, err := tx.Query(t.Context(), sql, args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// denied reports whether the server refused for a missing right, in words that name the object.
func denied(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42501" && strings.HasPrefix(refused.Message, "permission denied for ")
}
