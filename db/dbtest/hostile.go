package dbtest

import (
	"database/sql"
	"testing"
)

// hostile are defaults that a literal, a text format or an unqualified name would fall for.
var hostile = []string{
	"standard_conforming_strings = off", "backslash_quote = off", "array_nulls = off", "transform_null_equals = on",
	"bytea_output = 'escape'", "DateStyle = 'German'", "IntervalStyle = 'sql_standard'", "extra_float_digits = -15",
	"TimeZone = 'America/St_Johns'", "search_path = ''", "quote_all_identifiers = on",
}

// Vanish are statements after which the server refuses what the session has prepared, once it has run ListPauses after the first.
var Vanish = []string{"SELECT 1", "DISCARD ALL", "DEALLOCATE ALL", "ALTER TABLE outbox.pause ALTER actor TYPE varchar(128)"}

// Hostile gives the database of the URL hostile defaults, and those added. The pool it returns reads alike whatever they are: it is for what a test does beside
// the store.
func Hostile(t testing.TB, dsn string, added ...string) *sql.DB {
	t.Helper()
	beside, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { beside.Close() })
	for _, setting := range append(added, hostile...) {
		statement := `DO $do$ BEGIN EXECUTE format($$ALTER DATABASE %I SET ` + setting + `$$, current_database()); END $do$`
		if _, err := beside.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
	return beside
}
