package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/schemaname"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	dsnVariable = "FENCEPOST_DSN"
	// largestPayload is the most that any service may allow itself (outbox.Config.MaxPayload).
	largestPayload = 1 << 20
)

// A connection is how a command reaches its tables.
type connection struct {
	flag    string // that gives dsn; "" = --dsn
	dsn     string
	schema  string
	timeout time.Duration
}

func (c *connection) addFlags(cmd *cobra.Command) {
	c.schema = schemaname.Default
	cmd.Flags().StringVar(&c.dsn, "dsn", "", "connection string of the database; see fencepost --help")
	cmd.Flags().Var(schemaFlag{&c.schema}, "schema", "schema of the tables")
}

// addTimeout adds the flag whose default is 10 seconds unless the command has set another.
func (c *connection) addTimeout(cmd *cobra.Command, what string) {
	c.timeout = cmp.Or(c.timeout, 10*time.Second)
	cmd.Flags().Var(durationFlag{&c.timeout, time.Millisecond, time.Hour}, "timeout", what)
}

// given is the connection string and where it is from.
func (c *connection) given() (source, dsn string) {
	if c.dsn != "" {
		return c.flagName(), c.dsn
	}
	return dsnVariable, os.Getenv(dsnVariable)
}

func (c *connection) flagName() string { return cmp.Or(c.flag, "--dsn") }

// config parses the connection string of a server. What it says about a bad one repeats nothing of it.
func (c *connection) config(command string) (*pgxpool.Config, error) {
	source, dsn := c.given()
	if dsn == "" {
		return nil, usagef("no database: give %s or set %s; see fencepost --help", c.flagName(), dsnVariable)
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, usagef("%s is no connection string: it takes postgres://user@host:5432/database, host=… user=… dbname=…, or sqlite:PATH", source)
	}
	if misread(config) {
		return nil, usagef("%s holds an @ in an odd place: in a password, the characters / ? # @ and %% must be percent-encoded", source)
	}
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = command
	}
	return config, nil
}

// misread reports whether a part of the password may have become part of another field, which later errors would show.
func misread(config *pgxpool.Config) bool {
	found := strings.Contains(config.ConnConfig.Database+config.ConnConfig.Host, "@")
	for name := range config.ConnConfig.RuntimeParams {
		found = found || strings.Contains(name, "@")
	}
	return found
}

// withBox calls use with a box on the database, within the timeout.
func (c *connection) withBox(cmd *cobra.Command, use func(context.Context, *outbox.Box) error) error {
	return c.within(cmd.Context(), func(ctx context.Context) error {
		return c.withDatabase(ctx, cmd, func(_ *database, box *outbox.Box) error { return use(ctx, box) })
	})
}

// withDatabase calls use with a database and a box on it; only the look at the tables' version is bounded by the timeout.
func (c *connection) withDatabase(ctx context.Context, cmd *cobra.Command, use func(*database, *outbox.Box) error) error {
	on, err := c.open(ctx, cmd.CommandPath())
	if err != nil {
		return err
	}
	defer on.close()
	box, err := outbox.New(on.store, outbox.Config{MaxPayload: largestPayload, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := c.within(ctx, box.CheckSchema); err != nil {
		return err
	}
	return use(on, box)
}

// within calls do with a context that ends after the timeout.
func (c *connection) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, &slowError{c.timeout})
	defer cancel()
	if err := do(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// whole is within for a transaction that a Ctrl-C must not tear: it comes to its end first, so that what was done is known.
func (c *connection) whole(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.within(context.WithoutCancel(ctx), do)
}

// addTenants adds the flag that narrows a command to some tenants, and gives the scope it asks for.
func addTenants(cmd *cobra.Command) func() outbox.Scope {
	tenants := cmd.Flags().StringArray("tenant", nil, "only this tenant; may be repeated (default all)")
	return func() outbox.Scope {
		if len(*tenants) == 0 {
			return outbox.AllTenants
		}
		return outbox.Tenants(*tenants...)
	}
}
