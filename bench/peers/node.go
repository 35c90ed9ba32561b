package peers

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/bench/contest"
)

// packages are what npm installs, Node among them: pg-boss needs 22.
var packages = []string{"node@22.23.3", "graphile-worker@0.18.0", "pg-boss@12.38.0"}

var (
	//go:embed node/serve.mjs
	serve string
	//go:embed node/graphile.mjs
	graphile string
	//go:embed node/pgboss.mjs
	pgboss string
)

// Node is a product for Node.js. It runs in one process, which is told line by line what to do.
type Node struct {
	name, settings, program string

	process *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
}

// Graphile is graphile-worker.
func Graphile() *Node {
	return &Node{name: "graphile", program: graphile, settings: "graphile-worker 0.18.0 as its page on performance has it: localQueue size 500, " +
		"completeJobBatchDelay and failJobBatchDelay 0, concurrentJobs 24, maxPoolSize 25, one process of Node 22"}
}

// PgBoss is pg-boss.
func PgBoss() *Node {
	return &Node{name: "pg-boss", program: pgboss, settings: "pg-boss 12.38.0, batchSize 5,000, burstWhenBatchFull (fetch at once after a full batch), " +
		"pollingIntervalSeconds 0.5 (the least), no supervision, one process of Node 22"}
}

func (n *Node) Name() string     { return n.name }
func (n *Node) Settings() string { return n.settings }

func (n *Node) Open(ctx context.Context, dsn string) error {
	dir, err := installed(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", contest.ErrAbsent, err)
	}
	n.process = exec.CommandContext(ctx, filepath.Join(dir, "node_modules/node/bin/node"), "--input-type=module", "--eval", serve+n.program)
	n.process.Dir = dir // where imports are looked for
	n.process.Env = append(os.Environ(), "DATABASE_URL="+dsn, "NODE_ENV=production", "NO_LOG_SUCCESS=1")
	n.process.Stderr = os.Stderr
	if n.orders, err = n.process.StdinPipe(); err != nil {
		return err
	}
	answers, err := n.process.StdoutPipe()
	if err != nil {
		return err
	}
	n.answers = bufio.NewScanner(answers)
	if err := n.process.Start(); err != nil {
		return err
	}
	if _, err := n.answer(); err != nil {
		return errors.Join(err, n.Close(ctx))
	}
	return nil
}

// installed is the folder in which npm has installed the packages, which it does once.
func installed(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "fencepost-bench", strings.Join(packages, ","))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "npm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	args := append([]string{"install", "--prefix", fresh, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"}, packages...)
	if out, err := exec.CommandContext(ctx, "npm", args...).CombinedOutput(); err != nil {
		last := out[strings.LastIndexByte(strings.TrimSpace(string(out)), '\n')+1:]
		return "", fmt.Errorf("npm install: %w %s", err, strings.TrimSpace(string(last)))
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, os.ErrExist) { // there is one when another run was quicker
		return "", err
	}
	return dir, nil
}

// do gives an order and waits for its answer.
func (n *Node) do(order ...any) (int, error) {
	if _, err := fmt.Fprintln(n.orders, order...); err != nil {
		return 0, err
	}
	defer time.AfterFunc(patience, func() { _ = n.process.Process.Kill() }).Stop()
	return n.answer()
}

// answer reads up to the next one; whatever else the product says goes to the error output.
func (n *Node) answer() (int, error) {
	for n.answers.Scan() {
		if number, is := strings.CutPrefix(n.answers.Text(), "= "); is {
			return strconv.Atoi(number)
		}
		fmt.Fprintln(os.Stderr, n.answers.Text())
	}
	return 0, errors.Join(errors.New("node has ended"), n.answers.Err())
}

func (n *Node) Fill(_ context.Context, messages int) error {
	_, err := n.do("fill", messages)
	return err
}

func (n *Node) Drain(_ context.Context, messages int) error {
	_, err := n.do("drain", messages)
	return err
}

func (n *Node) Stream(_ context.Context, producers int, span time.Duration) (int, error) {
	return n.do("stream", producers, span.Milliseconds())
}

// Close lets the process end by itself, as it does at the end of its orders.
func (n *Node) Close(context.Context) error {
	return errors.Join(n.orders.Close(), n.process.Wait())
}
