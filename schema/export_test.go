package schema

import (
	"context"
	"database/sql"
	"io/fs"
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
