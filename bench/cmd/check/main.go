// Command check compares the speed of this tree with that of a commit, by turns on this machine, and fails where it has become worse.
//
//	go -C bench run ./cmd/check [--rounds 5] [--share 1] <commit>
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// A guarded workload, with the share of its size that is enough to compare.
type guarded struct {
	workload string
	share    float64
	figures  []guard
}

// A guard is a figure that must not become worse.
type guard struct {
	name         string
	lessIsBetter bool
	least        float64 // of how many times as good as the commit's
}

// rates may fall to nine tenths, since wall time is noisy; allocations, which are not, may rise by a tenth.
var workloads = []guarded{
	{"W1", 1, []guard{{"rate", false, 0.9}, {"client_allocs_per_message", true, 1 / 1.1}}},
	{"W4", 0.3, []guard{{"rate", false, 0.9}}},
	{"W6", 0.02, []guard{{"p50_ms", true, 0.9}}},
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "how often each takes its turn; medians of the pairs count")
	share := flags.Float64("share", 1, "the share of the sizes that are usual here, as 0.1 for a quick look")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *rounds < 1 || *share <= 0 || *share > 1 {
		return errors.New("say which commit to compare with, as in make bench-check BASE=HEAD~1; rounds are at least 1, the share above 0 and at most 1")
	}
	folder, err := os.MkdirTemp("", "fencepost-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	tree := filepath.Join(folder, "tree")
	if err := do(ctx, "git", "worktree", "add", "--quiet", "--detach", tree, flags.Arg(0)); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, do(context.WithoutCancel(ctx), "git", "worktree", "remove", "--force", tree))
	}()
	base, err := build(ctx, filepath.Join(tree, "bench"), filepath.Join(folder, "base"))
	if err != nil {
		return err
	}
	head, err := build(ctx, ".", filepath.Join(folder, "head"))
	if err != nil {
		return err
	}
	var all []verdict
	for _, w := range workloads {
		if !base.workloads[w.workload] {
			fmt.Printf("%s: %s does not have it\n", w.workload, flags.Arg(0))
			continue
		}
		c := newComparison(w)
		for round := range *rounds {
			turns := []*program{base, head}
			if round%2 == 1 { // who comes first may have it better
				turns[0], turns[1] = head, base
			}
			for _, p := range turns {
				fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", w.workload, round+1, *rounds, filepath.Base(p.path))
				out, err := p.run(ctx, w.workload, "--peers", "fencepost", "--rounds", "1", "--json", "--share", fmt.Sprint(w.share**share))
				if err == nil {
					err = c.add(p == head, out)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", filepath.Base(p.path), err)
				}
			}
		}
		all = append(all, c.verdicts()...)
	}
	return tell(os.Stdout, all)
}

// do runs a command, whose complaints become the error.
func do(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, out)
	}
	return nil
}

// A program is the benchmarks of one tree.
type program struct {
	path      string
	workloads map[string]bool
}

var listed = regexp.MustCompile(`(?m)^  (W\d+) `)

func build(ctx context.Context, module, path string) (*program, error) {
	if err := do(ctx, "go", "-C", module, "build", "-o", path, "./cmd/bench"); err != nil {
		return nil, err
	}
	p := &program{path: path, workloads: map[string]bool{}}
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w\n%s", path, err, help)
	}
	for _, match := range listed.FindAllStringSubmatch(string(help), -1) {
		p.workloads[match[1]] = true
	}
	return p, nil
}

func (p *program) run(ctx context.Context, args ...string) ([]byte, error) {
	var complaints strings.Builder
	command := exec.CommandContext(ctx, p.path, args...)
	command.Stderr = &complaints
	command.Env = append(os.Environ(), "GOGC=400") // that of both, whatever each sets by itself
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, complaints.String())
	}
	return out, nil
}
