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

	"github.com/fencepost-go/fencepost/schema"
)

// A database is one that the demo made for itself on somebody's server.
type database struct {
	DSN  string `json:"dsn"`
	Name string `json:"name"`
}

// createDatabase makes a database with fencepost's tables.
func createDatabase(ctx context.Context, dsn string) (*database, error) {
	d := &database{DSN: dsn, Name: "fencepost_demo_" + strings.ToLower(rand.Text()[:10])}
	if err := d.execute(ctx, "CREATE DATABASE "+d.Name); err != nil {
		return nil, err
	}
	if err := d.migrate(ctx); err != nil {
		return nil, errors.Join(err, d.drop())
	}
	return d, nil
}

// drop removes the database, also when the demo's context has ended.
func (d *database) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return d.execute(ctx, "DROP DATABASE "+d.Name+" WITH (FORCE)")
}

// execute runs a statement in the database that the connection string names. Once begun it is not interrupted: the server may finish one that
// nobody waits for, and a database would stay that nobody drops.
func (d *database) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, d.DSN)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func (d *database) migrate(ctx context.Context) error {
	config, err := d.config()
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	return errors.Join(schema.Up(ctx, db, schema.Config{}), db.Close())
}

func (d *database) open(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := d.config()
	if err != nil {
		return nil, err
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func (d *database) config() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(d.DSN)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Database = d.Name
	config.MaxConns = 8
	return config, nil
}
