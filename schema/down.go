package schema

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Down rolls back the migrations above the version, newest first, with all data in what they created. Version 0 removes
// everything: also the version table, and the schema if Up made it and nothing else is in it. A database that is at the
// version, below it, or without the schema is left as it is.
func Down(ctx context.Context, db *sql.DB, config Config, version int64) error {
	in, err := open(db, config)
	if err != nil {
		return err
	}
	if version < 0 || version > Newest() {
		return fmt.Errorf("schema: version %d is not between 0 and %d, the newest this program knows", version, Newest())
	}
	return in.report(ctx, in.down(ctx, version))
}

func (in *installation) down(ctx context.Context, version int64) error {
	if err := in.checkPool(); err != nil {
		return err
	}
	after := in.remove
	if version > 0 {
		after = keep
	}
	return in.change(ctx, in.checkInstalled, func(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) {
		return p.DownTo(ctx, version)
	}, after)
}

func (in *installation) checkInstalled(ctx context.Context, db database.DBTxConn) error {
	_, installed, err := in.inspect(ctx, db)
	if err == nil && !installed {
		err = errNothingToDo
	}
	if err != nil {
		return err
	}
	return in.refuseNewer(ctx, db, false)
}

// remove undoes bootstrap.
func (in *installation) remove(ctx context.Context, db database.DBTxConn) error {
	if _, err := db.ExecContext(ctx, in.statement("DropVersionTable")); err != nil {
		return err
	}
	var droppable bool
	if err := db.QueryRowContext(ctx, in.statement("IsOursAndEmpty"), in.name).Scan(&droppable); err != nil || !droppable {
		return err
	}
	_, err := db.ExecContext(ctx, in.statement("DropSchema"))
	return err
}
