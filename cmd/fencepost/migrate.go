package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/schema"
)

type migration struct {
	connection
	down, status, print, yes bool
	to                       int
	lockTimeout              time.Duration
}

func newMigrate() *cobra.Command {
	m := migration{to: -1, lockTimeout: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Install or upgrade the tables",
		Long: `Install or upgrade the tables. It may be run any number of times, by several processes at once, and beside a
running service; what each migration locks is said at its top (--print). A file of SQLite that does not exist is made.

--down rolls back the migrations above a version, with all data in what they created: --to 0 removes everything.`,
		Example: `  fencepost migrate
  fencepost migrate --status --json
  fencepost migrate --print | less
  fencepost migrate --dsn sqlite:shop.db
  fencepost migrate --down --to 0 --yes`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.run(cmd) },
	}
	m.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&m.down, "down", false, "roll back instead, to the version of --to")
	flags.Var(optionalInt{intFlag{&m.to, 0, int(schema.Newest())}}, "to", "the version to roll back to")
	flags.BoolVar(&m.yes, "yes", false, "yes, lose the data that --down removes")
	flags.BoolVar(&m.status, "status", false, "change nothing, list the migrations")
	flags.BoolVar(&m.print, "print", false, "change nothing, print the SQL for an empty database; needs no connection")
	flags.Var(durationFlag{&m.lockTimeout, time.Millisecond, time.Hour}, "lock-timeout", "how long to wait for a table in use")
	return cmd
}

func (m *migration) run(cmd *cobra.Command) error {
	if err := m.check(); err != nil {
		return err
	}
	config := schema.Config{Name: m.schema, LockTimeout: m.lockTimeout, Logger: progressLogger(cmd.ErrOrStderr())}
	path, isFile, err := m.file()
	if err != nil {
		return err
	}
	if isFile {
		config.Dialect = schema.SQLite
	}
	if m.print {
		if err := noJSON(cmd); err != nil {
			return err
		}
		return schema.Print(cmd.OutOrStdout(), config)
	}
	open := m.server
	if isFile {
		open = func(string) (*sql.DB, error) { return m.inFile(path) }
	}
	db, err := open(cmd.CommandPath())
	if err != nil {
		return err
	}
	defer db.Close()
	if err := m.change(cmd.Context(), db, config); err != nil {
		return err
	}
	migrations, err := schema.Status(cmd.Context(), db, config)
	if err != nil {
		return err
	}
	return output(cmd, newMigrationReport(m.schema, migrations))
}

// check refuses flags that do not go together.
func (m *migration) check() error {
	switch {
	case m.down && m.status, m.down && m.print, m.status && m.print:
		return usagef("--down, --status and --print exclude each other")
	case m.down && m.to < 0:
		return usagef("--down needs --to with the version to keep; 0 keeps nothing")
	case !m.down && m.to >= 0:
		return usagef("--to goes with --down only")
	case m.down && !m.yes:
		return usagef("--down removes tables with all data in them; add --yes to do that")
	}
	return nil
}

// server gives the pool that package schema takes; a migration holds two connections.
func (m *migration) server(command string) (*sql.DB, error) {
	config, err := m.config(command)
	if err != nil {
		return nil, err
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	return stdlib.OpenDB(*config.ConnConfig), nil
}

// inFile gives the one connection to a file that package schema takes. The store's others stay unopened.
func (m *migration) inFile(path string) (*sql.DB, error) {
	store, err := openFile(path, !m.down && !m.status)
	if err != nil {
		return nil, err
	}
	return store.DB(), nil
}

func (m *migration) change(ctx context.Context, db *sql.DB, config schema.Config) error {
	switch {
	case m.status:
		return nil
	case m.down:
		return schema.Down(ctx, db, config, int64(m.to))
	default:
		return schema.Up(ctx, db, config)
	}
}

// progressLogger shows each migration as it is done.
func progressLogger(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Key == slog.TimeKey || attr.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return attr
		},
	}))
}

type migrationReport struct {
	Schema     string            `json:"schema"`
	Version    int64             `json:"version"`
	Migrations []migrationStatus `json:"migrations"`
}

type migrationStatus struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"` // null = pending
}

func newMigrationReport(name string, migrations []schema.Migration) migrationReport {
	r := migrationReport{Schema: name, Migrations: []migrationStatus{}}
	for _, m := range migrations {
		status := migrationStatus{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			at := m.AppliedAt.UTC()
			status.AppliedAt = &at
			r.Version = m.Version
		}
		r.Migrations = append(r.Migrations, status)
	}
	return r
}

func (r migrationReport) text(p *page) {
	p.linef("schema %s has version %d", r.Schema, r.Version)
	var rows [][]string
	for _, m := range r.Migrations {
		applied := "pending"
		if m.AppliedAt != nil {
			applied = instant(*m.AppliedAt)
		}
		rows = append(rows, []string{fmt.Sprint(m.Version), m.Name, applied})
	}
	p.table([]string{"VERSION", "MIGRATION", "APPLIED"}, rows)
}
