package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/internal/pgserver"
	"github.com/fencepost-go/fencepost/schema"
)

// settings come on top of those of pgserver, which has no fsync. They keep the server's own work out of runs of a second, where it would hit
// one contender and not the other: each run starts on tables that were just filled, so there is nothing to vacuum.
var settings = []string{
	"ALTER SYSTEM SET autovacuum = off",
	"ALTER SYSTEM SET checkpoint_timeout = '1h'",
	"ALTER SYSTEM SET max_wal_size = '8GB'",
	"SELECT pg_reload_conf()",
}

var (
	// dsn is the throwaway server of this run.
	dsn string
	// server is a session on it that prepares the runs, and runs the floor.
	server *sql.DB
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	cluster, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	dsn = cluster.DSN()
	server, err = sql.Open("pgx", dsn)
	if err != nil {
		return 0, err
	}
	defer server.Close()
	if err := schema.Up(ctx, server, schema.Config{}); err != nil {
		return 0, err
	}
	server.SetMaxOpenConns(1)
	for _, setting := range settings {
		if _, err := server.ExecContext(ctx, setting); err != nil {
			return 0, err
		}
	}
	if err := floor.Create(ctx, server, payloadSize); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
