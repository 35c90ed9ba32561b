package sqlitedb

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"modernc.org/sqlite" // the driver "sqlite"
)

// parameters are those that may follow a file in a connection string. A ? alone may be part of a name.
var parameters = regexp.MustCompile(`\?\w+=`)

// Open makes a store on the file, which is created when it is missing, and closed by Close. It opens no connection yet; each that it opens gets
// write-ahead logging and the config's settings. The tables must have been made (package schema, with SQLite as its dialect, takes DB()).
func Open(path string, config Config) (*Store, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("sqlitedb: path %q is not that of a file: each connection would have a database of its own; give a path such as data/shop.db", path)
	}
	if plain, found := strings.CutPrefix(path, "sqlite:"); found {
		return nil, fmt.Errorf("sqlitedb: path %q is a connection string of the command: give the path alone, %q", path, plain)
	}
	if at := parameters.FindStringIndex(path); at != nil {
		return nil, fmt.Errorf("sqlitedb: path %q ends with parameters: give the path alone, %q, and what is to be set in Config (MustExist makes no file)", path, path[:at[0]])
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlitedb: %w", err)
	}
	writer, err := handle(path, config, "_txlock", "immediate")
	if err != nil {
		return nil, err
	}
	// One connection: writers of this process wait in line for it, without asking the file again and again.
	writer.SetMaxOpenConns(1)
	reader, err := handle(path, config, "_query_only", "1")
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	reader.SetMaxOpenConns(config.Readers)
	reader.SetMaxIdleConns(config.Readers)
	return &Store{writer: newStatements(writer), reader: newStatements(reader), config: config, owned: true, opened: path}, nil
}

func handle(path string, config Config, key, value string) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn(path, config, key, value))
	if err != nil {
		return nil, fmt.Errorf("sqlitedb: %w", err)
	}
	return sql.OpenDB(opener{connector, path}), nil
}

// dsn is the name by which the driver opens a connection to the file.
func dsn(path string, config Config, key, value string) string {
	settings := url.Values{
		"_busy_timeout": {fmt.Sprint(config.BusyTimeout.Milliseconds())},
		"_journal_mode": {"WAL"},
		"_synchronous":  {[]string{Full: "FULL", Normal: "NORMAL"}[config.Synchronous]},
		"_dqs":          {"0"},
		// What a savepoint would take back is kept in memory, not written to a file beside each changed page.
		"_pragma": {"temp_store(MEMORY)"},
		key:       {value},
	}
	if config.MustExist {
		settings.Set("mode", "rw")
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
	return name.String()
}

// New makes a store on a handle that the caller opened with the driver "sqlite" of modernc.org/sqlite, on a file, and closes after the store's
// last use; Close leaves it alone. It opens no connection. What Open sets the handle must have set: each transaction of the store's own
// checks its connection for journal_mode WAL, a busy_timeout of a second or more, and the synchronous of the config, and its error says
// what to add to the handle's name. Of the config only Synchronous is used.
func New(pool *sql.DB, config Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("sqlitedb: pool is nil; open one with sql.Open, or use Open")
	}
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	return &Store{writer: newStatements(pool), reader: newStatements(pool), config: config}, nil
}

// Close ends the connections of a store that Open made; one that New made it leaves open. No operation may run then or start afterwards.
func (s *Store) Close() error {
	err := errors.Join(s.reader.close(), s.writer.close())
	if s.owned {
		// The writer last: it moves what the log holds into the file.
		err = errors.Join(err, s.reader.pool.Close(), s.writer.pool.Close())
	}
	return err
}

// DB is the handle for the application's own transactions on the file. Of a store that Open made it has one connection, and every transaction on it
// begins as a writer: while one is open, the others of this process and the store's own wait for it.
func (s *Store) DB() *sql.DB { return s.writer.pool }
