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
	"runtime/pprof"
	"slices"
	"strings"
)

// options are what the command line says.
type options struct {
	peers  []string // by name; empty means all
	rounds int
	share  float64 // of the workloads' sizes
	json   bool
}

// A workload is a contest by its name.
type workload struct {
	name, about string
	run         func(context.Context, options) (report, error)
}

var workloads = []workload{
	{"W1", "drain of 200,000 messages that are there already", drain},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() { usage(flags) }
	peers := flags.String("peers", "", "the contenders beside fencepost, by commas (default all)")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each takes its turn; medians count")
	flags.Float64Var(&o.share, "share", 1, "the share of the workloads' sizes, as 0.1 for a quick look")
	profile := flags.String("cpuprofile", "", "write a CPU profile of this process, for go tool pprof, to this file")
	flags.BoolVar(&o.json, "json", false, "print a JSON object for each workload and contender")
	var names []string
	for len(args) > 0 { // flags may stand anywhere
		if err := flags.Parse(args); err != nil {
			return err
		}
		if args = flags.Args(); len(args) > 0 {
			names, args = append(names, args[0]), args[1:]
		}
	}
	if *peers != "" {
		o.peers = strings.Split(*peers, ",")
	}
	if o.rounds < 1 || o.share <= 0 || o.share > 1 {
		return errors.New("--rounds must be at least 1 and --share above 0 and at most 1")
	}
	for _, name := range names {
		if !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			return fmt.Errorf("there is no workload %q; see --help", name)
		}
	}
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, w := range workloads {
		if len(names) > 0 && !slices.Contains(names, w.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", w.name, w.about)
		r, err := w.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if err := r.print(os.Stdout, w.name, o.json); err != nil {
			return err
		}
	}
	return nil
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
