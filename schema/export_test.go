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
	return in.wrap(in.alone(ctx, in.up))
}

// UpConnecting is Up with another bound for the wait for the second connection.
func UpConnecting(ctx context.Context, db *sql.DB, within time.Duration) error {
	in, err := open(db, Config{})
	if err != nil {
		return err
	}
	in.connectTimeout = within
	return in.wrap(in.alone(ctx, in.up))
}

// Blockers lists the sessions that an ErrBlocked would name.
func Blockers(ctx context.Context, db *sql.DB, config Config) ([]string, error) {
	in, err := open(db, config)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	return in.listBlockers(ctx, tx)
}
