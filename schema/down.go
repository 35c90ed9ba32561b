package schema

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
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
	return in.alone(ctx, func(ctx context.Context) error { return in.rollBack(ctx, version) })
}

func (in *installation) rollBack(ctx context.Context, version int64) error {
	var installed bool
	err := in.step(ctx, func(tx *sql.Tx) (err error) {
		if _, installed, err = in.inspect(ctx, tx); err != nil || !installed {
			return err
		}
		return in.refuseNewer(ctx, tx)
	})
	if err != nil || !installed {
		return err
	}
	err = in.migrate(ctx, func(p *goose.Provider) ([]*goose.MigrationResult, error) { return p.DownTo(ctx, version) })
	if err != nil || version > 0 {
		return err
	}
	return in.step(ctx, func(tx *sql.Tx) error { return in.remove(ctx, tx) })
}

// remove undoes bootstrap.
func (in *installation) remove(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, in.statement("DropVersionTable")); err != nil {
		return err
	}
	var droppable bool
	if err := tx.QueryRowContext(ctx, in.statement("IsOursAndEmpty"), in.name).Scan(&droppable); err != nil || !droppable {
		return err
	}
	_, err := tx.ExecContext(ctx, in.statement("DropSchema"))
	return err
}
