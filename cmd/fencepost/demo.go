package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/internal/demo"
	"github.com/fencepost-go/fencepost/internal/pgserver"
)

func newDemo() *cobra.Command {
	var c connection
	effects, seed := 2000, 1
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a small shop whose effects survive everything that can go wrong",
		Long: `Run a small shop: an HTTP service that writes orders, events and their effects in one transaction, worker
processes that perform the effects, a receiver that keeps a ledger, and a bus whose handler counts each order in the
shop's books. Calls fail and time out, a worker is killed (SIGKILL), an order is rolled back, a dead message is
replayed, a lane is paused and resumed, a handler of the bus fails. In the end the orders are compared with the ledger,
the books and the stream of events: the command fails unless nothing is lost, nothing is unexpected, each order is
counted once, and there are no more duplicate calls than the killed worker held leases.

It runs on SQLite, all processes on one file in a temporary folder. With --postgres it runs on a throwaway PostgreSQL
server, for which the server's programs must be installed (as root on Debian and Ubuntu it installs them), or on the
server of --dsn, whose role must be allowed to create databases: there it makes a database of its own and drops it in
the end. The environment names no database here.`,
		Example: `  fencepost demo
  fencepost demo --effects 20000 --json
  fencepost demo --postgres
  fencepost demo --postgres --dsn postgres://postgres@localhost:5432/postgres`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	postgres := flags.Bool("postgres", false, "run on PostgreSQL instead of SQLite")
	flags.StringVar(&c.dsn, "dsn", "", "with --postgres, connection string of a server to use instead of a throwaway one")
	flags.Var(intFlag{&effects, demo.MinEffects, 10_000_000}, "effects", "how many effects")
	flags.Var(intFlag{&seed, 1, 1 << 31}, "seed", "decides which calls fail")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.dsn != "" && !*postgres {
			return usagef("--dsn goes with --postgres: without it the demo runs on a file of its own")
		}
		config := demo.Config{Effects: effects, Seed: uint64(seed)}
		if *postgres {
			return onPostgres(cmd, c, config)
		}
		return runDemo(cmd, config)
	}
	cmd.AddCommand(newDemoWorker())
	return cmd
}

// newDemoWorker is what the demo's worker processes run.
func newDemoWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(cmd *cobra.Command, _ []string) error { return demo.Work(cmd.Context(), cmd.InOrStdin()) },
	}
}

// onPostgres runs the demo on the server that is given, or on a throwaway one.
func onPostgres(cmd *cobra.Command, c connection, config demo.Config) (err error) {
	if c.dsn == "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "starting a throwaway PostgreSQL server")
		server, err := pgserver.Start(cmd.Context(), pgserver.Options{Durable: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		c.dsn = server.DSN()
	}
	if _, err := c.config(""); err != nil {
		return err
	}
	config.DSN = c.dsn
	return runDemo(cmd, config)
}

func runDemo(cmd *cobra.Command, config demo.Config) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	config.Worker = []string{executable, "demo", "worker"}
	config.Progress = cmd.ErrOrStderr()
	config.Terminal = isTerminal(config.Progress)
	report, err := demo.Run(cmd.Context(), config)
	if err != nil {
		return err
	}
	if err := output(cmd, demoReport{report}); err != nil {
		return err
	}
	if !report.OK() {
		return errors.New("the demo found a broken promise: see lost, unexpected and duplicates above")
	}
	return nil
}

type demoReport struct{ demo.Report }

func (r demoReport) text(p *page) {
	number := func(n int) string { return thousands(int64(n)) }
	p.linef("")
	p.table([]string{"EFFECTS", ""}, [][]string{
		{"enqueued", number(r.Enqueued), fmt.Sprintf("by %s orders, and none by the one that was rolled back", number(r.Orders))},
		{"delivered", number(r.Delivered), "in the receiver's ledger, each once"},
		{"retried", number(r.Retried), "calls that failed or timed out"},
		{"dead", number(r.Dead), "refused by the receiver"},
		{"replayed", number(r.Replayed), "after it was repaired"},
		{"duplicates", number(r.Duplicates), fmt.Sprintf("calls for what was performed already; at most %s, what the killed worker held", number(r.Held))},
		{"lost", number(r.Lost), "ordered, not in the ledger"},
		{"unexpected", number(r.Unexpected), "in the ledger, not ordered"},
		{"events", number(r.Events), "orders in the stream, each once"},
		{"booked", number(r.Booked), "orders that the handler of the bus counted, each once"},
	})
	verdict := levelOK
	if !r.OK() {
		verdict = levelCritical
	}
	p.linef("")
	p.levelLinef(verdict, "seed %d, %.1f s", r.Seed, r.Seconds)
}
