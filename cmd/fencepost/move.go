package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/move"
	"github.com/fencepost-go/fencepost/internal/schemaname"
	"github.com/fencepost-go/fencepost/outbox"
)

type moving struct {
	from, to connection
	acting   acting
}

func newMove() *cobra.Command {
	m := moving{from: connection{flag: "--from", schema: schemaname.Default}, to: connection{flag: "--to", schema: schemaname.Default, timeout: time.Minute}}
	m.acting.reason = move.Reason
	cmd := &cobra.Command{
		Use:   "move --from sqlite:PATH --to postgres://USER@HOST/DATABASE",
		Short: "Move an outbox from a file of SQLite to PostgreSQL",
		Long: `Move an outbox from a file of SQLite to tables of PostgreSQL that migrate has made and nothing else is in: messages with
their attempts and epochs, settlements, blocked order keys, pauses and the audit, under the same ids; events in their order,
their readers, and claims. Batches stay behind, with what became of their rows: while one is not completed nothing is moved. The next lease of a message has the next epoch, so what guards against late performances downstream goes on guarding.

Stop the service first: what it would still enqueue into the file would stay there. Everything in the file is paused, for
good; while a sender still holds leases nothing is moved (exit code 3): wait for it, or stop it, and run this again. A lease
that nobody will settle is given back as lost: its message comes back unsure, and Reconcile is asked. At the end every row is
compared; until then the database is paused too. Run it again after whatever interrupted it: it goes on. It needs the rights of the
tables' owner.`,
		Example: `  fencepost move --from sqlite:shop.db --to postgres://app@db.internal/shop
  fencepost move --from sqlite:shop.db --to postgres://app@db.internal/shop --json`,
		Args: noArguments,
		RunE: m.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&m.from.dsn, "from", "", "the file to move, sqlite:PATH; required")
	flags.StringVar(&m.to.dsn, "to", "", "connection string of the database that takes it over (default "+dsnVariable+")")
	flags.Var(schemaFlag{&m.to.schema}, "schema", "schema of the tables there")
	flags.Var(textFlag{&m.acting.actor}, "actor", "who does this, for the audit (default the user of the operating system)")
	m.to.addTimeout(cmd, "give up after this long for one step")
	return cmd
}

func (m *moving) run(cmd *cobra.Command, _ []string) error {
	m.from.timeout = m.to.timeout
	switch _, isFile, err := m.from.file(); {
	case m.from.dsn == "" || !isFile:
		return usagef("--from takes the file to move, as in sqlite:shop.db")
	case err != nil:
		return err
	}
	if _, isFile, _ := m.to.file(); isFile {
		return usagef("--to takes a database of PostgreSQL, as in postgres://user@host:5432/database")
	}
	by, err := m.acting.by()
	if err != nil {
		return err
	}
	return m.from.withDatabase(cmd.Context(), cmd, func(source *database, _ *outbox.Box) error {
		if err := m.from.within(cmd.Context(), source.checkKnown); err != nil {
			return err
		}
		return m.to.withDatabase(cmd.Context(), cmd, func(target *database, _ *outbox.Box) error {
			progress := newProgress(cmd)
			report, err := move.Move{
				Source: source.store.(move.Source), Target: target.store.(move.Target), Actor: by.Actor, Rows: moveRows, Step: m.to.within,
				Said: func(done string, n, of int64) {
					progress.sayf("%s of %s messages and events %s", thousands(n), thousands(of), done)
				},
			}.Run(cmd.Context())
			if refusal := (*move.Refusal)(nil); errors.As(err, &refusal) {
				return notDonef("%v", refusal)
			}
			if err != nil {
				return err
			}
			return output(cmd, newMoveReport(report))
		})
	})
}

// checkKnown refuses a file that a newer release has added to: what it added would be left behind.
func (d *database) checkKnown(ctx context.Context) error {
	versions, err := d.store.ReadVersion(ctx)
	if err != nil {
		return err
	}
	if _, newest := d.store.SchemaRange(); versions[0] > newest {
		return fmt.Errorf("%w: the file is at version %d, and this program would move only what it knows of, up to %d: run the release that added to it",
			outbox.ErrSchemaTooNew, versions[0], newest)
	}
	return nil
}

// moveRows is how many rows of a table go in one transaction at most.
const moveRows = 500

// A moveReport is what the database has of the file.
type moveReport struct {
	Messages    int64 `json:"messages"`
	Stored      int64 `json:"stored"` // by this run
	Open        int64 `json:"open"`
	Settled     int64 `json:"settled"`
	BlockedKeys int64 `json:"blocked_keys"`
	Pauses      int64 `json:"pauses"`
	Acts        int64 `json:"acts"` // of operators, in the audit
	Events      int64 `json:"events"`
	Readers     int64 `json:"readers"`
	Claims      int64 `json:"claims"`
}

func newMoveReport(r move.Report) moveReport {
	return moveReport{
		Messages: r.Rows["message"], Stored: int64(r.Stored), Open: r.Rows["queue"], Settled: r.Rows["settlement"],
		BlockedKeys: r.Rows["order_lease"], Pauses: r.Rows["pause"], Acts: r.Rows["audit"],
		Events: r.Rows["event"], Readers: r.Rows["reader"], Claims: r.Rows["claim"],
	}
}

func (r moveReport) text(p *page) {
	p.table([]string{"MESSAGES", "OPEN", "SETTLED", "BLOCKED KEYS", "PAUSES", "ACTS", "EVENTS", "READERS", "CLAIMS"}, [][]string{{
		thousands(r.Messages), thousands(r.Open), thousands(r.Settled), thousands(r.BlockedKeys), thousands(r.Pauses), thousands(r.Acts),
		thousands(r.Events), thousands(r.Readers), thousands(r.Claims),
	}})
	p.linef("\nmoved, %s messages by this run, and compared row by row. Everything in the file stays paused; start the service on the database.", thousands(r.Stored))
}
