package pgtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/internal/pgserver"
)

// Restored gives a database that a dump of another was restored into: by pg_dump and psql where the server that the tests use came with them, else row
// by row as they do it.
func Restored(t testing.TB, dsn string) string {
	t.Helper()
	if into, ok := dumped(t, dsn); ok {
		return into
	}
	return copied(t, dsn)
}

func dumped(t testing.TB, dsn string) (into string, ok bool) {
	t.Helper()
	binaries, err := pgserver.Binaries()
	if err != nil || os.Getenv(urlVariable) != "" {
		return "", false
	}
	server, err := filepath.EvalSymlinks(filepath.Join(binaries, "postgres"))
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	file := filepath.Join(t.TempDir(), "dump.sql")
	into = Empty(t)
	for _, command := range [][]string{{"pg_dump", "-f", file, dsn}, {"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, into}} {
		program := filepath.Join(filepath.Dir(server), command[0])
		if _, err := os.Stat(program); err != nil {
			return "", false
		}
		if problem, err := exec.CommandContext(t.Context(), program, command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("pgtest: %s: %v: %s", program, err, problem)
		}
	}
	return into, true
}

// copied moves the rows and the sequences, with no trigger told of it.
func copied(t testing.TB, dsn string) (into string) {
	t.Helper()
	into = New(t)
	from, to := connected(t, dsn), connected(t, into)
	ctx := t.Context()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal("pgtest: ", err)
		}
	}
	names := func(kind string) []string {
		rows, err := from.Query(ctx, `SELECT c.oid::regclass::text FROM pg_class AS c
			WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind = $1 AND c.relname NOT LIKE 'schema_version%'`, kind)
		do(err)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		do(err)
		return all
	}
	_, err := to.Exec(ctx, "SET session_replication_role = replica")
	do(err)
	for _, table := range names("r") {
		_, err := to.Exec(ctx, "DELETE FROM "+table)
		do(err)
		var rows bytes.Buffer
		_, err = from.PgConn().CopyTo(ctx, &rows, "COPY "+table+" TO STDOUT")
		do(err)
		_, err = to.PgConn().CopyFrom(ctx, &rows, "COPY "+table+" FROM STDIN")
		do(err)
	}
	for _, sequence := range names("S") {
		var last int64
		var called bool
		do(from.QueryRow(ctx, "SELECT last_value, is_called FROM "+sequence).Scan(&last, &called))
		_, err := to.Exec(ctx, "SELECT setval($1::text::regclass, $2, $3)", sequence, last, called)
		do(err)
	}
	return into
}

func connected(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}
