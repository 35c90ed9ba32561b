package schema

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/internal/schemaname"
)

// A Dialect is the kind of database that holds the tables.
type Dialect int

const (
	Postgres Dialect = iota
	SQLite
)

// Config says where and how migrations run. The zero value is valid.
type Config struct {
	// Dialect is that of the database. The zero value is Postgres.
	Dialect Dialect

	// Name is the name of the schema: 1 to 63 letters A to Z and a to z, digits, _ and -, kept as written. Empty means
	// outbox, and on SQLite, where it is the prefix of the tables, nothing else is taken.
	Name string

	// LockTimeout bounds each wait of a migration for a table that others use, and with it how long these may be held up
	// behind the migration; on SQLite each wait for the file, whatever the handle's own busy timeout. Zero means 5 seconds; at
	// least a millisecond, at most an hour.
	LockTimeout time.Duration

	// RolePrefix begins the names of the roles that Grants makes; the rules of Name hold for the names they become. Empty
	// means Name and an underscore, as in outbox_sender. SQLite has no roles and refuses it.
	RolePrefix string

	// Logger reports each migration that was applied or rolled back. Nil means silence.
	Logger *slog.Logger
}

const (
	defaultLockTimeout = 5 * time.Second
	minLockTimeout     = time.Millisecond // what the server rounds to, and 0 would mean to wait for ever
	maxLockTimeout     = time.Hour

	// connectTimeout bounds the wait for a connection of the pool.
	connectTimeout = 10 * time.Second
)

// writtenLockTimeout is the setting as the SQL files have it, for those who run them with a tool of their own.
const writtenLockTimeout = `lock_timeout = '5s'`

// installation is what one call works on: a schema in a database.
type installation struct {
	dialect        Dialect
	db             *sql.DB
	name           string
	rolePrefix     string
	lockTimeout    time.Duration
	connectTimeout time.Duration
	logger         *slog.Logger
	migrations     fs.FS
	statements     map[string]string
	encoding       string // that the database must have
}

func open(db *sql.DB, config Config) (*installation, error) {
	in := &installation{
		dialect:        config.Dialect,
		db:             db,
		name:           cmp.Or(config.Name, schemaname.Default),
		rolePrefix:     cmp.Or(config.RolePrefix, cmp.Or(config.Name, schemaname.Default)+"_"),
		lockTimeout:    cmp.Or(config.LockTimeout, defaultLockTimeout),
		connectTimeout: connectTimeout,
		logger:         cmp.Or(config.Logger, slog.New(slog.DiscardHandler)),
		migrations:     postgres,
		statements:     postgresStatements,
		encoding:       "UTF8",
	}
	var problems []error
	switch config.Dialect {
	case Postgres:
		if onSQLite(db) {
			problems = append(problems, errors.New("Config.Dialect is Postgres, and the handle is one on SQLite: set Dialect: schema.SQLite"))
		}
	case SQLite:
		in.migrations, in.statements, in.encoding = sqlite, sqliteStatements, "UTF-8"
		if in.name != schemaname.Default {
			problems = append(problems, fmt.Errorf("Config.Name %q: on SQLite the tables' prefix is always %s; use a file for each installation",
				in.name, schemaname.Default))
		}
		if config.RolePrefix != "" {
			problems = append(problems, errors.New("Config.RolePrefix: SQLite has no roles"))
		}
	default:
		problems = append(problems, fmt.Errorf("Config.Dialect %d is neither Postgres nor SQLite", config.Dialect))
	}
	if err := schemaname.Validate(in.name); err != nil {
		problems = append(problems, fmt.Errorf("Config.Name %w", err))
	}
	if in.lockTimeout < minLockTimeout || in.lockTimeout > maxLockTimeout {
		problems = append(problems, fmt.Errorf("Config.LockTimeout %v is not between %v and %v",
			in.lockTimeout, minLockTimeout, maxLockTimeout))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("schema: %w", errors.Join(problems...))
	}
	return in, nil
}

// onSQLite reports whether the name of the handle's driver says that it is one for SQLite, whichever.
func onSQLite(db *sql.DB) bool {
	return db != nil && strings.Contains(strings.ToLower(fmt.Sprintf("%T", db.Driver())), "sqlite")
}

// rewrite returns SQL as this installation runs it.
func (in *installation) rewrite(sql string) string {
	limit := fmt.Sprintf("lock_timeout = '%dms'", in.lockTimeout.Milliseconds())
	return strings.ReplaceAll(schemaname.Swap(sql, in.name), writtenLockTimeout, limit)
}
