package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/database"
)

// appliedVersion is a row of the version table.
type appliedVersion struct {
	number int64
	at     time.Time
}

// instant reads a point in time as either dialect keeps it; on SQLite it is microseconds.
type instant struct{ time.Time }

// Scan implements sql.Scanner.
func (i *instant) Scan(value any) error {
	switch value := value.(type) {
	case time.Time:
		i.Time = value
	case int64:
		i.Time = time.UnixMicro(value)
	default:
		return fmt.Errorf("%T is no instant", value)
	}
	return nil
}

// listVersions returns the rows of the version table, newest first.
func (in *installation) listVersions(ctx context.Context, db database.DBTxConn) ([]appliedVersion, error) {
	rows, err := db.QueryContext(ctx, in.statement("ListVersions"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var versions []appliedVersion
	for rows.Next() {
		var number int64
		var at instant
		if err := rows.Scan(&number, &at); err != nil {
			return nil, err
		}
		versions = append(versions, appliedVersion{number: number, at: at.Time})
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
