// Command bench runs fencepost and other products through the same work, by turns, on a PostgreSQL of its own.
//
//	go -C bench run ./cmd/bench [workload…] [--peers river,watermill] [--rounds 3] [--share 1] [--json]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
)

// options are what the command line says.
type options struct {
	peers                  []string // by name; empty means all
	rounds                 int
	share                  float64 // of the workloads' sizes
	json                   bool
	cpuProfile, memProfile string
}

// A workload is a contest by its name.
type workload struct {
	name, about string
	run         func(context.Context, *sitting) error
}

// workloads are in the order in which they run. Each is in a file named after what it does.
var workloads = []workload{
	{"W1", "drain of 200,000 messages that are there already", drain},
	{"W2", "four producers for 20 s, one message a transaction, with the sender in the same process", stream},
	{"W3", "latency from commit to handler at 300 messages a second", pace},
	{"W4", "drain of 300,000 while another session holds an old snapshot", snapshot},
	{"W5", "drain of 100,000 beside 1,000,000 deferred and 5,000,000 delivered messages", beside},
	{"W6", "leases at a backlog of 10,000 to 10,000,000", backlog},
	{"W7", "fairness and cost with 1, 100 and 10,000 tenants", tenants},
	{"W8", "drain by 1, 2, 4 and 8 processes", processes},
	{"W9", "drain of payloads of 1, 10 and 60 KiB", payloads},
	{"W10", "drain with batches of 1 to 2,000", batches},
	{"W11", "leases while a janitor removes 1,000,000 messages", purge},
	{"W12", "memory of a sender's process", memory},
	{"W13", "drain through pgx, lib/pq, pgx's database/sql driver, and on SQLite", drivers},
	{"W14", "twenty consumers of one process with nothing to do", idle},
	{"W15", "one hot order key and 1,000 warm ones", orderKeys},
}

// gcPercent is for every contender written in Go: a program that does nothing else has a heap of a few megabytes, which the default of 100 collects
// dozens of times a second, as it would not that of a service.
const gcPercent = 400

// others are whom --peers can name; each takes part in those workloads that it can do.
var others = []string{"floor", "pgbench", "river", "watermill", "graphile", "pg-boss"}

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if is, err := child(ctx, args); is {
		return err
	}
	chosen, o, err := parse(args)
	if err != nil {
		return err
	}
	stop, err := profile(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for i, w := range chosen {
		fmt.Fprintf(os.Stderr, "%s: %s\n", w.name, w.about)
		r, err := sit(ctx, o, w.run)
		if err == nil && o.json && i == 0 {
			err = r.printMachine(os.Stdout, o)
		}
		if err == nil {
			err = r.print(os.Stdout, w.name, o.json)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// parse reads the command line: which workloads, and how.
func parse(args []string) (chosen []workload, o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() { usage(flags) }
	peers := flags.String("peers", "", "the contenders beside fencepost, by commas: "+strings.Join(others, ", ")+" (default all)")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each takes its turn; medians count, which are worth something from 3 on")
	flags.Float64Var(&o.share, "share", 1, "the share of the workloads' sizes, as 0.1 for a quick look")
	flags.BoolVar(&o.json, "json", false, "print a JSON object for each workload and contender")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of this process, for go tool pprof, to this file")
	flags.StringVar(&o.memProfile, "memprofile", "", "write a profile of this process's allocations, for go tool pprof, to this file")
	var names []string
	for len(args) > 0 { // flags may stand anywhere
		if err := flags.Parse(args); err != nil {
			return nil, o, err
		}
		if args = flags.Args(); len(args) > 0 {
			names, args = append(names, args[0]), args[1:]
		}
	}
	if *peers != "" {
		o.peers = strings.Split(*peers, ",")
	}
	if o.rounds < 1 || o.share <= 0 || o.share > 1 {
		return nil, o, errors.New("--rounds must be at least 1 and --share above 0 and at most 1")
	}
	for _, name := range o.peers {
		if name != fencepost && !slices.Contains(others, name) {
			return nil, o, fmt.Errorf("there is no peer %q; see --help", name)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			return nil, o, fmt.Errorf("there is no workload %q; see --help", name)
		}
	}
	for _, w := range workloads {
		if len(names) == 0 || slices.Contains(names, w.name) {
			chosen = append(chosen, w)
		}
	}
	return chosen, o, nil
}

func usage(flags *flag.FlagSet) {
	out := flags.Output()
	fmt.Fprint(out, `Runs fencepost and other products through the same work, by turns, on a PostgreSQL of its own.

usage: go -C bench run ./cmd/bench [workload…] [flags]

workloads (default all):
`)
	for _, w := range workloads {
		fmt.Fprintf(out, "  %-4s %s\n", w.name, w.about)
	}
	fmt.Fprint(out, "\nflags:\n")
	flags.PrintDefaults()
	fmt.Fprint(out, `
examples:
  go -C bench run ./cmd/bench W1 --peers floor,river
  go -C bench run ./cmd/bench --share 0.1 --json
`)
}
