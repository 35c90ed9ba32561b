package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/schemaname"
	"github.com/fencepost-go/fencepost/outbox"
)

// A database is what a command works on, whichever kind it is of.
type database struct {
	store db.Store
	inTx  func(ctx context.Context, box *outbox.Box, fn func(db.Tx) error) error
	close func()
}

func (c *connection) open(ctx context.Context, command string) (*database, error) {
	path, isFile, err := c.file()
	if err != nil {
		return nil, err
	}
	if isFile {
		store, err := openFile(path, false)
		if err != nil {
			return nil, err
		}
		return &database{
			store: store,
			inTx: func(ctx context.Context, box *outbox.Box, fn func(db.Tx) error) error {
				return sqlitedb.InTx(ctx, store, box, func(tx *sqlitedb.BoxTx) error { return fn(tx) })
			},
			close: func() { store.Close() },
		}, nil
	}
	config, err := c.config(command)
	if err != nil {
		return nil, err
	}
	pool, closePool, err := openPool(ctx, config)
	if err != nil {
		return nil, err
	}
	store, err := pgxdb.New(pool, pgxdb.Config{Schema: c.schema, Listen: config.ConnConfig})
	if err != nil {
		closePool()
		return nil, err
	}
	return &database{
		store: store,
		inTx: func(ctx context.Context, box *outbox.Box, fn func(db.Tx) error) error {
			return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error { return fn(tx) })
		},
		close: closePool,
	}, nil
}

// openPool gives a pool and what ends its use. Tests have it share one between commands.
var openPool = func(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, func(), error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return pool, pool.Close, nil
}

// filePrefix begins the connection string of a file of SQLite.
const filePrefix = "sqlite:"

// file is the path of a connection string that names a file. What it says about a bad one repeats nothing of it.
func (c *connection) file() (path string, isFile bool, err error) {
	source, dsn := c.given()
	path, isFile = strings.CutPrefix(dsn, filePrefix)
	switch {
	case !isFile:
	case c.schema != schemaname.Default:
		err = usagef("--schema goes with PostgreSQL only: in a file of SQLite there is one set of tables")
	case path == "" || strings.HasPrefix(path, "//") || strings.Contains(path, "://") || strings.HasPrefix(path, "file:") || strings.HasPrefix(path, ":"):
		err = usagef("%s takes a path after sqlite:, as in sqlite:shop.db or sqlite:/var/lib/shop/shop.db", source)
	}
	return path, isFile, err
}

// openFile makes a store on a file that must be there, unless it may be made.
func openFile(path string, mayMake bool) (*sqlitedb.Store, error) {
	store, err := sqlitedb.Open(path, sqlitedb.Config{MustExist: !mayMake}) // which makes nothing yet
	if err != nil {
		return nil, usagef("after sqlite: stands a path and nothing else, as in sqlite:shop.db or sqlite:/var/lib/shop/shop.db")
	}
	here := path
	if mayMake {
		here = filepath.Dir(path)
	}
	if _, err := os.Stat(here); !errors.Is(err, fs.ErrNotExist) {
		return store, nil
	}
	named, dsn := " "+fileOf(store), " --dsn "+store.DSN()
	if strings.ContainsAny(path, "@=") { // which may be a password's connection string
		named, dsn = "", ""
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	if mayMake {
		return nil, usagef("the folder of the database's file%s does not exist: make it, or correct the path", named)
	}
	return nil, usagef("the database's file%s does not exist: correct the path, or make the file with fencepost migrate%s", named, dsn)
}

// fileOf is the absolute path of a store's file, "" for one on PostgreSQL.
func fileOf(store db.Store) string {
	if file, ok := store.(*sqlitedb.Store); ok {
		return strings.TrimPrefix(file.DSN(), filePrefix)
	}
	return ""
}
