package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/pressly/goose/v3"
)

// ErrTooNew says that a newer release of fencepost has migrated the schema further than this one knows. The error that
// wraps it names both versions. Retrying does not help: this program must be upgraded first.
var ErrTooNew = errors.New("the schema is newer than this program")

// Up brings the schema to the newest version. It creates what is missing, schema included, and where nothing is missing it
// only looks. A database in another encoding than UTF8 is refused. It may be called by any number of processes at once and takes two connections of the pool.
func Up(ctx context.Context, db *sql.DB, config Config) error {
	in, err := open(db, config)
	if err != nil {
		return err
	}
	return in.report(ctx, in.up(ctx))
}

func (in *installation) up(ctx context.Context) error {
	if err := in.checkPool(); err != nil {
		return err
	}
	var current bool
	err := in.step(ctx, func(tx *sql.Tx) error {
		if err := in.checkEncoding(ctx, tx); err != nil {
			return err
		}
		migrations, err := in.status(ctx, tx)
		current = !slices.ContainsFunc(migrations, func(m Migration) bool { return m.AppliedAt.IsZero() || m.Name == "" })
		return err
	})
	// Current is the usual case at a start: replicas need not queue up for the lock then, each with a connection.
	if err != nil || current {
		return err
	}
	return in.alone(ctx, in.upgrade)
}

// checkEncoding refuses a database whose texts are not those of the program.
func (in *installation) checkEncoding(ctx context.Context, db querier) error {
	var encoding string
	err := db.QueryRowContext(ctx, in.statement("ServerEncoding")).Scan(&encoding)
	if err == nil && encoding != "UTF8" {
		err = fmt.Errorf("the database has the encoding %s: it needs one made with ENCODING 'UTF8'", encoding)
	}
	return err
}

func (in *installation) upgrade(ctx context.Context) error {
	if err := in.step(ctx, func(tx *sql.Tx) error { return in.bootstrap(ctx, tx) }); err != nil {
		return err
	}
	return in.migrate(ctx, func(p *goose.Provider) ([]*goose.MigrationResult, error) { return p.Up(ctx) })
}

// bootstrap creates the schema and the version table where they are missing.
func (in *installation) bootstrap(ctx context.Context, tx *sql.Tx) error {
	hasSchema, hasVersions, err := in.inspect(ctx, tx)
	if err != nil {
		return err
	}
	if !hasSchema {
		if _, err := tx.ExecContext(ctx, in.statement("CreateSchema")); err != nil {
			return err
		}
	}
	if !hasVersions {
		if _, err := tx.ExecContext(ctx, in.statement("CreateVersionTable")); err != nil {
			return err
		}
	}
	return in.refuseNewer(ctx, tx)
}

// migrate runs goose over the migrations.
func (in *installation) migrate(ctx context.Context, run func(*goose.Provider) ([]*goose.MigrationResult, error)) error {
	provider, err := goose.NewProvider(goose.DialectCustom, in.db, rewritten{in},
		goose.WithStore(store{in}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	done, err := run(provider)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		done = partial.Applied
		err = fmt.Errorf("migration %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	for _, result := range done {
		in.logger.InfoContext(ctx, "schema migrated", "schema", in.name, "direction", result.Direction,
			"migration", result.Source.Path, "duration", result.Duration)
	}
	return err
}
