package fencepost_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// pages are the texts that users read, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, name := range append(names, "README.md", "CONTRIBUTING.md") {
		pages[name] = readFile(t, name)
	}
	return pages
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every piece of Go in the documentation is compiled, and used below.
func TestSnippets(t *testing.T) {
	t.Parallel()
	program := strings.NewReplacer("package sqlitedb_test", "package main", "func Example()", "func main()")
	compiled := program.Replace(readFile(t, "db/sqlitedb/example_test.go"))
	for _, pattern := range []string{"snippets*_test.go", "publish/*/snippets_test.go"} { // publishers are modules of their own, which the gate tests too
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			compiled += readFile(t, name)
		}
	}
	for name, page := range pages(t) {
		for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(compiled, block[1]) {
				t.Errorf("%s has Go that no test compiles:\n%s", name, block[1])
			}
		}
	}
}

func printLabelTwice(t *testing.T, pool *pgxpool.Pool, box *outbox.Box) {
	t.Helper()
	l, err := ledger.New(box, ledger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	printed := 0
	for range 2 {
		err := pgxdb.InTx(t.Context(), pool, box, func(tx *pgxdb.BoxTx) error {
			label, err := printLabel(t.Context(), tx, l, "17", func() ([]byte, error) {
				printed++
				return []byte("label"), nil
			})
			if string(label) != "label" {
				t.Errorf("label %q", label)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if printed != 1 {
		t.Errorf("printed %d times", printed)
	}
}

func TestEventSnippetsWork(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(context.Background(), pgtest.New(t)+"&pool_max_conns=4")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, statement := range []string{"CREATE TABLE orders (id text PRIMARY KEY, cents bigint)", "CREATE TABLE books AS SELECT 0 AS orders"} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	box, err := openBox(pool)
	if err != nil {
		t.Fatal(err)
	}
	log, err := openLog(box)
	if err != nil {
		t.Fatal(err)
	}
	if err := recordOrder(t.Context(), pool, box, log, Order{ID: "17", Cents: 100}); err != nil {
		t.Fatal(err)
	}
	printLabelTwice(t, pool, box)
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("waited too long for ", what)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error)
	go func() { kept <- keepBooks(ctx, log) }()
	until("the books", func() bool {
		var orders int
		err := pool.QueryRow(t.Context(), "SELECT orders FROM books").Scan(&orders)
		return err == nil && orders == 1
	})
	cancel()
	if err := <-kept; err != nil {
		t.Error(err)
	}
	var indexed []string
	until("the stream", func() bool {
		err := indexOrders(t.Context(), pool, box, log, func(_ pgx.Tx, e events.Event) error {
			indexed = append(indexed, string(e.Payload))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(indexed) > 0
	})
	if len(indexed) != 1 || indexed[0] != "17" {
		t.Errorf("indexed %q", indexed)
	}
}

func TestSnippetsWork(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(context.Background(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (id text PRIMARY KEY, cents bigint)"); err != nil {
		t.Fatal(err)
	}
	box, err := openBox(pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := placeOrder(t.Context(), pool, box, Order{ID: "17", Cents: 100}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var charged []string
	err = sendCharges(ctx, box, func(_ context.Context, key, order string) error {
		charged = append(charged, key+" "+order)
		cancel()
		return nil
	})
	if err != nil || len(charged) != 1 || charged[0] != "charge/17 17" {
		t.Errorf("charged %q, %v", charged, err)
	}
	housed, done := context.WithCancel(t.Context())
	defer done()
	watched, err := outbox.New(box.Store(), outbox.Config{Observer: &outbox.Observer{
		JanitorDone: func(_ context.Context, _ time.Time, err error) {
			if err != nil {
				t.Error(err)
			}
			done()
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := keepHouse(housed, watched); err != nil {
		t.Error(err)
	}
	page, err := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{State: outbox.StateDelivered, Limit: 10})
	if err != nil || len(page.Messages) != 1 {
		t.Errorf("delivered: %+v, %v", page.Messages, err)
	}
}

var (
	namedTest = regexp.MustCompile(`\b(?:Test|Example|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]+\b`)
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w+)\(`)
)

// A claim that cites a test cites one that exists.
func TestCitedTestsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "db/dbtest") {
			return err
		}
		for _, match := range testFunc.FindAllStringSubmatch(readFile(t, path), -1) {
			known[match[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages(t) {
		for _, cited := range namedTest.FindAllString(page, -1) {
			if !known[cited] {
				t.Errorf("%s cites %s, which does not exist", name, cited)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestLinks(t *testing.T) {
	t.Parallel()
	for name, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(page, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, match[1], err)
			}
		}
	}
}
