package schema

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3/database"

	"github.com/fencepost-go/fencepost/db"
)

// Migration is one migration and whether a database has it.
type Migration struct {
	Version   int64
	Name      string    // its file without extension; empty if it is of a newer release
	AppliedAt time.Time // zero = pending
}

// Newest returns the version that Up brings a schema to.
func Newest() int64 {
	sources := must((&installation{migrations: postgres}).sources())
	return sources[len(sources)-1].version
}

// Current returns the version of the schema in the database, 0 if there is none.
func Current(ctx context.Context, db *sql.DB, config Config) (int64, error) {
	migrations, err := Status(ctx, db, config)
	var current int64
	for _, migration := range migrations {
		if !migration.AppliedAt.IsZero() {
			current = migration.Version
		}
	}
	return current, err
}

// Status returns the migrations that this program knows or the database has, oldest first. It changes nothing and needs
// only the right to read the version table.
func Status(ctx context.Context, db *sql.DB, config Config) ([]Migration, error) {
	in, err := open(db, config)
	if err != nil {
		return nil, err
	}
	migrations, err := in.status(ctx, db)
	return migrations, in.report(ctx, err)
}

func (in *installation) status(ctx context.Context, db database.DBTxConn) ([]Migration, error) {
	sources, err := in.sources()
	if err != nil {
		return nil, err
	}
	migrations := make([]Migration, len(sources))
	for i, source := range sources {
		migrations[i] = Migration{Version: source.version, Name: strings.TrimSuffix(source.file, ".sql")}
	}
	_, installed, err := in.inspect(ctx, db)
	if err != nil {
		return nil, err
	}
	if !installed {
		return migrations, nil
	}
	applied, err := in.listVersions(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, version := range applied {
		at := slices.IndexFunc(migrations, func(m Migration) bool { return m.Version == version.number })
		switch {
		case at >= 0:
			migrations[at].AppliedAt = version.at
		case version.number > 0: // 0 is the version table itself
			migrations = append(migrations, Migration{Version: version.number, AppliedAt: version.at})
		}
	}
	slices.SortFunc(migrations, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return migrations, nil
}

// inspect reports whether the schema and its version table exist.
func (in *installation) inspect(ctx context.Context, db database.DBTxConn) (hasSchema, hasVersions bool, err error) {
	err = db.QueryRowContext(ctx, in.statement("Inspect"), in.name).Scan(&hasSchema, &hasVersions)
	return hasSchema, hasVersions, err
}

// refuseNewer returns ErrTooNew for a schema that this program does not know, unless it is one that migrations only added to.
func (in *installation) refuseNewer(ctx context.Context, db database.DBTxConn, added bool) error {
	sources, err := in.sources()
	if err != nil {
		return err
	}
	var version sql.NullInt64
	if err := db.QueryRowContext(ctx, in.statement("NewestVersion")).Scan(&version); err != nil {
		return err
	}
	if newest := sources[len(sources)-1].version; version.Int64 > newest && !(added && onlyAdds(version.Int64)) {
		return fmt.Errorf("%w: it has version %d, and this program knows none above %d", ErrTooNew, version.Int64, newest)
	}
	return nil
}

// onlyAdds reports whether this program works with the version, whether it knows it or not.
func onlyAdds(version int64) bool { return version < db.RefusedSchema }
