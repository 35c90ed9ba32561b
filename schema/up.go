package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// ErrTooNew says that a newer release of fencepost has migrated the schema further than this one works with, or, in Down, knows. The error
// that wraps it names both versions. Retrying does not help: this program must be upgraded first.
var ErrTooNew = errors.New("the schema is newer than this program")

// Up brings the schema to the newest version. It creates what is missing, schema included, and where nothing is missing it
// only looks; a newer schema that this program works with, since migrations only added to it, is left as it is. A database in another encoding than UTF8 is refused. It may be called by any number of processes at once and takes two
// connections of the pool, on SQLite one.
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
	look := in.look
	if in.dialect == Postgres {
		look = in.inTx
	}
	err := look(ctx, func(ctx context.Context, db database.DBTxConn) error {
		if err := in.checkEncoding(ctx, db); err != nil {
			return err
		}
		migrations, err := in.status(ctx, db)
		current = !slices.ContainsFunc(migrations, func(m Migration) bool { return m.AppliedAt.IsZero() || m.Name == "" && !onlyAdds(m.Version) })
		return err
	})
	// Current is the usual case at a start: replicas need not queue up for the lock then, each with a connection.
	if err != nil || current {
		return err
	}
	return in.change(ctx, in.bootstrap, func(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) { return p.Up(ctx) }, keep)
}

// checkEncoding refuses a database whose texts are not those of the program.
func (in *installation) checkEncoding(ctx context.Context, db database.DBTxConn) error {
	var encoding string
	err := db.QueryRowContext(ctx, in.statement("ServerEncoding")).Scan(&encoding)
	if err == nil && encoding != in.encoding {
		err = fmt.Errorf("the database has the encoding %s: it needs one made with ENCODING '%s'", encoding, in.encoding)
	}
	return err
}

// bootstrap creates the schema and the version table where they are missing.
func (in *installation) bootstrap(ctx context.Context, db database.DBTxConn) error {
	hasSchema, hasVersions, err := in.inspect(ctx, db)
	if err != nil {
		return err
	}
	if !hasSchema {
		if _, err := db.ExecContext(ctx, in.statement("CreateSchema")); err != nil {
			return err
		}
	}
	if !hasVersions {
		if _, err := db.ExecContext(ctx, in.statement("CreateVersionTable")); err != nil {
			return err
		}
	}
	return in.refuseNewer(ctx, db, true)
}

// migrations is a call of goose.
type migrations func(context.Context, *goose.Provider) ([]*goose.MigrationResult, error)

// migrate runs goose over the migrations, within the writing if there is one.
func (in *installation) migrate(ctx context.Context, run migrations, within *writing) error {
	options := []goose.ProviderOption{goose.WithStore(store{in}), goose.WithDisableGlobalRegistry(true)}
	if within != nil {
		options[0] = goose.WithStore(marking{store{in}, within})
		options = append(options, goose.WithSessionLocker(within))
	}
	provider, err := goose.NewProvider(goose.DialectCustom, in.db, rewritten{in}, options...)
	if err != nil {
		return err
	}
	done, err := run(ctx, provider)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		done = partial.Applied
		err = fmt.Errorf("migration %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	if within != nil && within.err != nil {
		done = nil
		if partial == nil {
			err = within.err // without goose's words around it
		}
	}
	for _, result := range done {
		in.logger.InfoContext(ctx, "schema migrated", "schema", in.name, "direction", result.Direction,
			"migration", result.Source.Path, "duration", result.Duration)
	}
	return err
}
