package sqlitedb

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
	"github.com/fencepost-go/fencepost/schema"
)

var update = flag.Bool("update", false, "write the golden")

const planGolden = "../../queries/sqlite/plans.txt"

// The plan of every statement is a committed golden, so that a change of SQL shows it in the diff, and is the same whatever SQLite has been told of
// the tables: nothing yet, what they are like when filled, or that they are empty although they are not.
func TestPlans(t *testing.T) {
	t.Parallel()
	store, err := Open(filepath.Join(t.TempDir(), "shop.db"), Config{Synchronous: Normal})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	unknown := plans(t, store)
	if *update {
		if err := os.WriteFile(planGolden, []byte(unknown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(planGolden)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(state, got string) {
		if got != string(golden) {
			t.Errorf("the plans of tables %s differ; go test ./db/sqlitedb -run TestPlans -update writes them\n%s", state, difference(string(golden), got))
		}
	}
	compare("never analysed", unknown)
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := store.DB().Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	run("ANALYZE")
	fill(t, store)
	compare("analysed when they were empty", plans(t, store))
	run("ANALYZE")
	compare("analysed when they were full", plans(t, store))
}

// fill makes every table large, with a few parked, ordered and dead messages among many pending and delivered ones.
func fill(t *testing.T, store *Store) {
	t.Helper()
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
	for _, statement := range []string{
		numbers + `INSERT INTO outbox_message (id, created_at, consumer, target, kind, key, tenant, order_key, digest)
			SELECT i, 1700000000000000 + i, 'c', 't', 'k' || (i % 5), 'key' || i, 'tenant' || (i % 20), iif(i % 10 = 0, 'o' || (i % 100), ''), zeroblob(32) FROM n`,
		`INSERT INTO outbox_queue (message_id, due_at, born_at, consumer, target, kind, tenant, order_key, state)
			SELECT id, created_at, created_at, consumer, target, kind, tenant, order_key, id % 50 = 1 FROM outbox_message WHERE id > 10000`,
		`INSERT INTO outbox_settlement (message_id, epoch, settled_at, attempt, replays, outcome, cause, reason)
			SELECT id, 1, created_at, 1, 0, iif(id % 20 = 0, 'dead', 'delivered'), iif(id % 20 = 0, 'permanent', ''), iif(id % 20 = 0, 'r', '')
			FROM outbox_message WHERE id <= 10000`,
		`INSERT INTO outbox_order_lease (message_id, leased_until, consumer, target, tenant, order_key)
			SELECT MIN(message_id), 1, consumer, target, tenant, order_key FROM outbox_queue WHERE order_key <> '' GROUP BY 3, 4, 5, 6`,
		numbers + `INSERT INTO outbox_audit (message_id, at, action, tenant, actor, reason) SELECT i, 1700000000000000, 'cancel', '', 'a', 'r' FROM n`,
		numbers + `INSERT INTO outbox_worker (started_at, seen_at, name, host) SELECT 1700000000000000, 1700000000000000, 'w' || i, 'h' FROM n LIMIT 100`,
		numbers + `INSERT INTO outbox_pause (paused_at, consumer, target, kind, tenant, actor, reason) SELECT 1700000000000000, 'c', 't', 'k', 'w' || i, 'a', 'r' FROM n LIMIT 10`,
		numbers + `INSERT INTO outbox_event (recorded_at, tenant, stream, type, event_id, digest)
			SELECT 1700000000000000 + i, 'tenant' || (i % 20), 's' || (i % 100), 't' || (i % 5), 'e' || i, zeroblob(32) FROM n`,
		numbers + `INSERT INTO outbox_reader (transaction_id, position, saved_at, name, incarnation, digest)
			SELECT i, i, 1700000000000000, 'r' || i, r.id, zeroblob(32) FROM n, outbox_incarnation AS r LIMIT 10`,
		numbers + `INSERT INTO outbox_claim (claimed_at, ended_at, state, tenant, scope, key, digest)
			SELECT 1700000000000000, 1700000000000000 + i, 1, 'tenant' || (i % 20), 's' || (i % 5), 'key' || i, zeroblob(32) FROM n`,
		numbers + `INSERT INTO outbox_batch (created_at, sealed_at, completed_at, tenant, consumer, target, kind, key, digest)
			SELECT 1700000000000000, 1700000000000000, iif(i % 2 = 0, 1700000000000000 + i, 253402214400000000), 'tenant' || (i % 20), 'c', 't', 'k',
				'key' || i, zeroblob(32) FROM n`,
		`INSERT INTO outbox_batch_row (batch_id, number, message_id, fate) SELECT 1 + id / 1000, id, id, iif(id > 10000, 0, 1) FROM outbox_message`,
	} {
		if _, err := store.DB().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// texts gathers the statements instead of running them.
type texts struct {
	*sql.DB
	all []string
}

func (p *texts) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	p.all = append(p.all, query)
	return nil, sql.ErrNoRows
}

func (p *texts) QueryContext(_ context.Context, query string, _ ...any) (*sql.Rows, error) {
	p.all = append(p.all, query)
	return nil, sql.ErrNoRows
}

func (p *texts) QueryRowContext(ctx context.Context, query string, _ ...any) *sql.Row {
	p.all = append(p.all, query)
	return p.DB.QueryRowContext(ctx, "SELECT 1 WHERE false")
}

var (
	named     = regexp.MustCompile(`-- name: (\w+)`)
	parameter = regexp.MustCompile(`\?(\d+)`)
)

// plans explains every statement, by name.
func plans(t *testing.T, store *Store) string {
	t.Helper()
	statements := &texts{DB: store.DB()}
	queries := reflect.ValueOf(gen.New(statements))
	for _, method := range queries.Methods() {
		if method.Type().NumIn() == 0 || method.Type().In(0) != reflect.TypeFor[context.Context]() {
			continue // WithTx
		}
		arguments := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < method.Type().NumIn(); i++ {
			arguments = append(arguments, reflect.Zero(method.Type().In(i)))
		}
		method.Call(arguments)
	}
	var all []string
	for _, text := range statements.all {
		arguments := 0
		for _, match := range parameter.FindAllStringSubmatch(text, -1) {
			n, _ := strconv.Atoi(match[1])
			arguments = max(arguments, n)
		}
		rows, err := store.DB().QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, arguments)...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		plan, depth := named.FindStringSubmatch(text)[1]+"\n", map[int]int{}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			depth[id] = depth[parent] + 1
			plan += fmt.Sprintf("%s%s\n", strings.Repeat("    ", depth[id]), detail)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, plan)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// difference gives the plans that differ.
func difference(want, got string) string {
	var b strings.Builder
	for _, plan := range strings.Split(got, "\n\n") {
		if !strings.Contains(want, plan) {
			b.WriteString(plan + "\n\n")
		}
	}
	return b.String()
}
