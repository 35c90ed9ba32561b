package pgtest

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/schema"
)

// RolePrefix gives the names of schema.Roles a beginning that no other test has: roles live outside of the test's database. They are dropped
// when the test ends, if they were made.
func RolePrefix(t testing.TB, dsn string) string {
	t.Helper()
	prefix := "Fp-" + random() + "_"
	t.Cleanup(func() {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Error("pgtest: ", err)
			return
		}
		defer db.Close()
		for _, role := range schema.Roles() {
			for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
				_, err := db.Exec(statement + `"` + prefix + role + `"`)
				if err != nil && !strings.Contains(err.Error(), "does not exist") {
					t.Error("pgtest: ", err)
				}
			}
		}
	})
	return prefix
}

// Roles makes the roles of schema.Grants for the database, and returns what gives its URL as one of them.
func Roles(t testing.TB, dsn string) (as func(role string) string) {
	t.Helper()
	prefix := RolePrefix(t, dsn)
	var script strings.Builder
	if err := schema.Grants(&script, schema.Config{RolePrefix: prefix}); err != nil {
		t.Fatal("pgtest: ", err)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	defer db.Close()
	if _, err := db.Exec(script.String()); err != nil {
		t.Fatal("pgtest: ", err)
	}
	return func(role string) string {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal("pgtest: ", err)
		}
		query := u.Query()
		query.Set("role", prefix+role)
		u.RawQuery = query.Encode()
		return u.String()
	}
}
