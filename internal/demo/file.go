package demo

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// A file is a database of SQLite that the demo made for itself, in a temporary folder.
type file struct {
	Folder string `json:"folder"`
}

func createFile(ctx context.Context) (*file, error) {
	folder, err := os.MkdirTemp("", "fencepost-demo-")
	if err != nil {
		return nil, err
	}
	f := &file{Folder: folder}
	store, err := sqlitedb.Open(f.path(), sqlitedb.Config{})
	if err == nil {
		err = errors.Join(schema.Up(ctx, store.DB(), schema.Config{Dialect: schema.SQLite}), store.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.drop())
	}
	return f, nil
}

func (f *file) path() string { return filepath.Join(f.Folder, "shop.db") }

func (f *file) drop() error { return os.RemoveAll(f.Folder) }

func (f *file) open() (connection, error) {
	store, err := sqlitedb.Open(f.path(), sqlitedb.Config{MustExist: true})
	if err != nil {
		return nil, err
	}
	return fileConnection{store}, nil
}

type fileConnection struct{ on *sqlitedb.Store }

func (c fileConnection) store() db.Store { return c.on }
func (c fileConnection) close()          { c.on.Close() }

func (c fileConnection) execute(ctx context.Context, statement string) error {
	_, err := c.on.DB().ExecContext(ctx, statement)
	return err
}

func (c fileConnection) inTx(ctx context.Context, box *outbox.Box, fn func(transaction) error) error {
	return sqlitedb.InTx(ctx, c.on, box, func(tx *sqlitedb.BoxTx) error {
		return fn(transaction{tx, func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		}})
	})
}

func (c fileConnection) handler(do func(context.Context, transaction, events.Event) error) events.HandlerFunc {
	return sqlitedb.EventHandler(func(ctx context.Context, tx *sql.Tx, e events.Event) error {
		return do(ctx, transaction{sqlitedb.Tx(tx), func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		}}, e)
	})
}

func (c fileConnection) ids(ctx context.Context, query string) (ids []int, err error) {
	rows, err := c.on.DB().QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
