package fencepost_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgserver"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A counter is a database with a table of orders, where programs that are not written in Go place them.
type counter struct {
	*testing.T
	dsn  string
	pool *pgxpool.Pool
	box  *outbox.Box
}

func newCounter(t *testing.T) counter {
	t.Helper()
	dsn := pgtest.New(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (id int PRIMARY KEY, customer text, cents int)"); err != nil {
		t.Fatal(err)
	}
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return counter{t, dsn, pool, box}
}

// block is the first piece of docs/enqueue.md in a language.
func (c counter) block(language string) string {
	c.Helper()
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(readFile(c.T, "docs/enqueue.md"))
	if found == nil {
		c.Fatalf("docs/enqueue.md has nothing in %s", language)
	}
	return found[1]
}

// run is what a program prints, stderr included, and whether it ended well.
func (c counter) run(input string, env []string, program string, args ...string) (string, bool) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), program, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// delivered has a sender perform what is due, and gives the payloads by key.
func (c counter) delivered() map[string]string {
	c.Helper()
	consumer, err := c.box.Consumer("mail", "smtp", outbox.Policy{})
	if err != nil {
		c.Fatal(err)
	}
	got := map[string]string{}
	s, err := sender.New(c.box, consumer, sender.Config{Slots: 1, Handlers: sender.Handlers{
		"receipt": {Do: func(_ context.Context, m outbox.Message) error {
			got[m.Key] = string(m.Payload) + " " + m.Metadata["locale"]
			return nil
		}},
	}})
	if err != nil {
		c.Fatal(err)
	}
	if _, err := s.RunOnce(c.Context()); err != nil {
		c.Fatal(err)
	}
	return got
}

// enqueueInGo records the effect of order 42 with a payload, and says what came of it.
func (c counter) enqueueInGo(payload string) outbox.Status {
	c.Helper()
	tx, err := c.pool.Begin(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	defer tx.Rollback(c.Context())
	receipt, err := c.box.Enqueue(c.Context(), pgxdb.Tx(tx), outbox.Effect{
		Consumer: "mail", Target: "smtp", Kind: "receipt", Key: "order-42", Payload: []byte(payload), Metadata: map[string]string{"locale": "en"},
	})
	if err != nil && receipt.Status != outbox.Conflicted {
		c.Fatal(err)
	}
	return receipt.Status
}

func (c counter) orders() (n int) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), "SELECT count(*) FROM orders").Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

func TestEnqueueFromPsql(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	dir, err := pgtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	program := pgtest.Program(t, "postgresql-client", `"brew install libpq" on macOS`, filepath.Join(dir, "psql"), "psql")
	psql := func(script string) (string, bool) {
		return c.run(script, nil, program, "-X", "-v", "ON_ERROR_STOP=1", c.dsn)
	}
	script := c.block("sql")
	table := strings.TrimSpace(c.block("text"))
	if out, ok := psql(script); !ok || !strings.Contains(out, table) {
		t.Fatalf("psql: %s, want the table\n%s", out, table)
	}
	again := strings.Replace(script, "VALUES (42", "VALUES (43", 1)
	if out, ok := psql(again); !ok || !strings.Contains(out, "duplicate") {
		t.Errorf("the same again: %s", out)
	}
	other := strings.NewReplacer("VALUES (42", "VALUES (44", `"order": 42`, `"order": 44`).Replace(script)
	if out, ok := psql(other); ok || !strings.Contains(out, `key "order-42" is taken by other content: message 1 (pending)`) {
		t.Errorf("other content: %s", out)
	}
	if c.enqueueInGo(`{"order": 42}`) != outbox.Duplicate || c.enqueueInGo(`{"order": 44}`) != outbox.Conflicted {
		t.Error("Go does not see what psql enqueued as it is")
	}
	if got := c.delivered(); len(got) != 1 || got["order-42"] != `{"order": 42} en` {
		t.Errorf("delivered %v", got)
	}
	if c.orders() != 2 {
		t.Errorf("%d orders, want 2: the one of the conflict is rolled back", c.orders())
	}
}

func TestEnqueueFromNode(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	node, env := nodeWithClient(t)
	place := func(call string) (string, bool) {
		program := c.block("js") + "\n" + call +
			".then(row => console.log(row.status, row.state)).catch(e => { console.error(e.code, e.constraint ?? e.column); process.exitCode = 1 })\n"
		return c.run(program, append(env, "DATABASE_URL="+c.dsn), node, "-")
	}
	for _, step := range []struct {
		call, want string
		ok         bool
	}{
		{"placeOrder(42, 'ada@example.org', 1999)", "recorded pending", true},
		{"placeOrder(42, 'ada@example.org', 1999)", "23505 orders_pkey", false}, // its own table's
		{"placeOrder(7, 'ada@example.org', 1)", "recorded pending", true},
		{"Buffer.from = () => null; placeOrder(8, 'eve@example.org', 5)", "22023 payload", false},
	} {
		if out, ok := place(step.call); ok != step.ok || !strings.Contains(out, step.want) {
			t.Errorf("%s: %s, want %s", step.call, out, step.want)
		}
	}
	if c.enqueueInGo(`{"order":42,"cents":1999}`) != outbox.Duplicate || c.enqueueInGo(`{"order":42,"cents":5}`) != outbox.Conflicted {
		t.Error("Go does not see what Node enqueued as it is")
	}
	if _, err := c.pool.Exec(t.Context(), "DELETE FROM orders WHERE id = 42"); err != nil {
		t.Fatal(err)
	}
	if out, ok := place("placeOrder(42, 'ada@example.org', 1999)"); !ok || !strings.Contains(out, "duplicate pending") {
		t.Errorf("the same again: %s", out)
	}
	if _, err := c.pool.Exec(t.Context(), "DELETE FROM orders WHERE id = 42"); err != nil {
		t.Fatal(err)
	}
	if out, ok := place("placeOrder(42, 'ada@example.org', 5)"); ok || !strings.Contains(out, "23505 message_key_unique") {
		t.Errorf("other content: %s", out)
	}
	got := c.delivered()
	if got["order-42"] != `{"order":42,"cents":1999} en` || got["order-7"] != `{"order":7,"cents":1} en` {
		t.Errorf("delivered %v", got)
	}
}

// nodeWithClient finds Node and its client for PostgreSQL. Where npm is there it brings the client, once; else, as root on a Debian, both are
// installed from its packages.
func nodeWithClient(t *testing.T) (node string, env []string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "fencepost-test-node")
	find := func() bool {
		path := strings.Join([]string{filepath.Join(cache, "node_modules"), "/usr/share/nodejs", "/usr/lib/nodejs"}, string(os.PathListSeparator))
		env = []string{"NODE_PATH=" + path}
		if node, err = exec.LookPath("node"); err != nil {
			return false
		}
		check := exec.CommandContext(t.Context(), node, "-e", "require('pg')")
		check.Env = append(os.Environ(), env...)
		return check.Run() == nil
	}
	if find() {
		return node, env
	}
	if npm, err := exec.LookPath("npm"); err == nil && node != "" {
		cmd := exec.CommandContext(t.Context(), npm, "install", "--prefix", cache, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "pg@8")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm install pg: %v\n%s", err, out)
		}
	} else if pgserver.CanInstall() {
		if err := pgserver.Install(t.Context(), "node-pg"); err != nil {
			t.Fatal(err)
		}
	}
	if !find() {
		t.Fatal(`found no Node with its client for PostgreSQL; install them: "apt-get install node-pg" on Debian and Ubuntu, or Node and "npm install pg"`)
	}
	return node, env
}
