package schema

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pressly/goose/v3/database"
)

// querier is what a pool, a connection and a transaction have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// applied is a row of the version table.
type applied struct {
	number int64
	at     time.Time
}

// listVersions returns the rows of the version table, newest first.
func (in *installation) listVersions(ctx context.Context, db querier) ([]applied, error) {
	rows, err := db.QueryContext(ctx, in.statement("ListVersions"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var versions []applied
	for rows.Next() {
		var version applied
		if err := rows.Scan(&version.number, &version.at); err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, rows.Err()
}

// store is the version table as goose sees it. goose's own would look for the table in the search_path, and creates it
// without a time zone.
type store struct{ in *installation }

func (s store) Tablename() string { return "schema_version" }

// TableExists is true: the table was made before goose starts.
func (s store) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

func (s store) CreateVersionTable(context.Context, database.DBTxConn) error {
	return errors.ErrUnsupported
}

func (s store) Insert(ctx context.Context, db database.DBTxConn, request database.InsertRequest) error {
	_, err := db.ExecContext(ctx, s.in.statement("InsertVersion"), request.Version)
	return err
}

func (s store) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, s.in.statement("DeleteVersion"), version)
	return err
}

// GetMigration is for calls of goose that this package does not make.
func (s store) GetMigration(context.Context, database.DBTxConn, int64) (*database.GetMigrationResult, error) {
	return nil, database.ErrNotImplemented
}

func (s store) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	var version sql.NullInt64
	err := db.QueryRowContext(ctx, s.in.statement("NewestVersion")).Scan(&version)
	if err == nil && !version.Valid {
		err = database.ErrVersionNotFound
	}
	return version.Int64, err
}

func (s store) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	versions, err := s.in.listVersions(ctx, db)
	migrations := make([]*database.ListMigrationsResult, len(versions))
	for i, version := range versions {
		migrations[i] = &database.ListMigrationsResult{Version: version.number, IsApplied: true}
	}
	return migrations, err
}
