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

// Hostile gives the database of the URL hostile defaults. The pool it returns reads alike whatever they are: it is for what a test does beside
// the store.
func Hostile(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	beside, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { beside.Close() })
	for _, setting := range hostile {
		statement := `DO $do$ BEGIN EXECUTE format($$ALTER DATABASE %I SET ` + setting + `$$, current_database()); END $do$`
		if _, err := beside.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
	return beside
}
