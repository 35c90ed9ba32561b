package schema

import (
	"context"
	"database/sql"
	"io/fs"
	"time"
)

// UpFiles is Up with other migrations.
func UpFiles(ctx context.Context, db *sql.DB, config Config, migrations fs.FS) error {
	in, err := open(db, config)
	if err != nil {
		return err
	}
	in.migrations = migrations
	return in.report(ctx, in.up(ctx))
}

// UpConnecting is Up with another bound for the wait for a connection.
func UpConnecting(ctx context.Context, db *sql.DB, within time.Duration) error {
	in, err := open(db, Config{})
	if err != nil {
		return err
	}
	in.connectTimeout = within
	return in.report(ctx, in.up(ctx))
}

// Blockers lists the sessions that an ErrBlocked would name.
func Blockers(ctx context.Context, db *sql.DB, config Config) ([]string, error) {
	in, err := open(db, config)
	if err != nil {
		return nil, err
	}
	return in.listBlockers(ctx)
}
