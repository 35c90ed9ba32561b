package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// A server is where the demo made a database for itself: somebody's PostgreSQL.
type server struct {
	DSN  string `json:"dsn"`
	Name string `json:"name"`
}

func createOnServer(ctx context.Context, dsn string) (*server, error) {
	s := &server{DSN: dsn, Name: "fencepost_demo_" + strings.ToLower(rand.Text()[:10])}
	if err := s.execute(ctx, "CREATE DATABASE "+s.Name); err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	return s, nil
}

func (s *server) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.execute(ctx, "DROP DATABASE "+s.Name+" WITH (FORCE)")
}

// execute runs a statement in the database that the connection string names. Once begun it is not interrupted: the server may finish one that
// nobody waits for, and a database would stay that nobody drops.
func (s *server) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.DSN)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func (s *server) migrate(ctx context.Context) error {
	config, err := s.config()
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	return errors.Join(schema.Up(ctx, db, schema.Config{}), db.Close())
}

func (s *server) open(ctx context.Context) (connection, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return serverConnection{pool, store}, nil
}

func (s *server) config() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Database = s.Name
	config.MaxConns = 8
	return config, nil
}

type serverConnection struct {
	pool *pgxpool.Pool
	on   *pgxdb.Store
}

func (c serverConnection) store() db.Store { return c.on }
func (c serverConnection) close()          { c.pool.Close() }

func (c serverConnection) execute(ctx context.Context, statement string) error {
	_, err := c.pool.Exec(ctx, statement)
	return err
}

func (c serverConnection) inTx(ctx context.Context, box *outbox.Box, fn func(transaction) error) error {
	return pgxdb.InTx(ctx, c.pool, box, func(tx *pgxdb.BoxTx) error {
		return fn(transaction{tx, func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		}})
	})
}

func (c serverConnection) handler(do func(context.Context, transaction, events.Event) error) events.HandlerFunc {
	return pgxdb.EventHandler(func(ctx context.Context, tx pgx.Tx, e events.Event) error {
		return do(ctx, transaction{pgxdb.Tx(tx), func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		}}, e)
	})
}

func (c serverConnection) ids(ctx context.Context, query string) ([]int, error) {
	rows, err := c.pool.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}
