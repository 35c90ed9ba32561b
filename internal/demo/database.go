package demo

import (
	"context"
	"log/slog"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// A database is one that the demo made for itself, in either kind, as it stands in a worker's job.
type database struct {
	Server *server `json:"server,omitempty"`
	File   *file   `json:"file,omitempty"`
}

// createDatabase makes a database with fencepost's tables: on the server, or in a temporary folder without one.
func createDatabase(ctx context.Context, dsn string) (d *database, err error) {
	d = &database{}
	if dsn == "" {
		d.File, err = createFile(ctx)
	} else {
		d.Server, err = createOnServer(ctx, dsn)
	}
	return d, err
}

func (d *database) open(ctx context.Context) (connection, error) {
	if d.File != nil {
		return d.File.open()
	}
	return d.Server.open(ctx)
}

// drop removes the database, also when the demo's context has ended.
func (d *database) drop() error {
	if d.File != nil {
		return d.File.drop()
	}
	return d.Server.drop()
}

// A connection is how a process uses the database. The same statements of the shop serve both kinds.
type connection interface {
	store() db.Store
	execute(ctx context.Context, statement string) error
	inTx(ctx context.Context, box *outbox.Box, fn func(transaction) error) error
	ids(ctx context.Context, query string) ([]int, error)
	handler(do func(ctx context.Context, tx transaction, e events.Event) error) events.HandlerFunc
	close()
}

// A transaction is one of the shop's, in which it also enqueues.
type transaction struct {
	own     db.Tx
	execute func(ctx context.Context, statement string, args ...any) error
}

func newBox(on connection) (*outbox.Box, error) {
	return outbox.New(on.store(), outbox.Config{Logger: slog.New(slog.DiscardHandler)})
}
