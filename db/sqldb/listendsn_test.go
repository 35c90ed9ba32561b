package sqldb

import (
	"database/sql"
	"strings"
	"testing"
)

// A connection string that cannot be read is refused at once, and nothing of it is repeated: it may hold a password.
func TestNewRefusesAListenDSNWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	pool, err := sql.Open("postgres", "host=127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, dsn := range []string{
		"postgres://u:secret word%zz@h/db", "postgres://u:secret@h:word/db", "host=h password='secret", "user=u password=pass secret host=h",
		"postgres://u@h/db?sslmode=secret",
	} {
		_, err := New(pool, Config{ListenDSN: dsn})
		if err == nil || !strings.Contains(err.Error(), "ListenDSN") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	for _, dsn := range []string{"", "postgres://u:secret@h/db", "host=h user=u password='secret word'"} {
		if _, err := New(pool, Config{ListenDSN: dsn}); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
