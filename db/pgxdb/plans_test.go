package pgxdb

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// The plan of each statement, in a normalised shape without costs, is a golden file under queries/postgres/plans, so that a change of SQL
// shows its plan in the diff. go test ./db/pgxdb -run TestPlans$ -update writes them: on PostgreSQL 15 the shapes for all versions, then on
// a newer one (FENCEPOST_PG_BIN) the shapes that differ from there on.
var update = flag.Bool("update", false, "write the plan goldens")

const (
	goldens     = "../../queries/postgres/plans"
	baseVersion = 15
)

// TestPlans explains every statement over a filled database and compares the shape with its golden.
// Shows: S1.37
func TestPlans(t *testing.T) {
	conn := planDatabase(t)
	fill(t, conn, messages())
	exec(t, conn, "VACUUM ANALYZE")
	for _, name := range statementNames() {
		t.Run(name, func(t *testing.T) {
			plan := explain(t, conn, name, "force_generic_plan")
			checkIndexed(t, plan)
			compareGolden(t, conn, name, plan.shape())
		})
	}
}

// TestPlansHoldInEveryStateOfTheStatistics plans the statements of the hot path on the empty table and then explains the cached plan, generic
// and custom, over a full table whose statistics are as wrong as they get in production.
func TestPlansHoldInEveryStateOfTheStatistics(t *testing.T) {
	conn := planDatabase(t)
	// The plans of before the fill: generic ones are cached now and stay, since inserts do not invalidate them.
	exec(t, conn, "SET plan_cache_mode = force_generic_plan")
	for _, name := range hotNames() {
		prepare(t, conn, name)
		explainExecute(t, conn, name)
	}
	fill(t, conn, messages())
	states := []struct{ name, set string }{
		{"cached before the fill", ""},
		{"left from other data", ""},
		{"never analysed", "UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE oid = ANY ($1); DELETE FROM pg_statistic WHERE starelid = ANY ($1)"},
		{"vacuumed empty", "UPDATE pg_class SET relpages = 0, reltuples = 0 WHERE oid = ANY ($1); DELETE FROM pg_statistic WHERE starelid = ANY ($1)"},
		{"pages without rows", "UPDATE pg_class SET relpages = 20000, reltuples = 0 WHERE oid = ANY ($1); DELETE FROM pg_statistic WHERE starelid = ANY ($1)"},
		{"bloated with few rows", "UPDATE pg_class SET relpages = 200000, reltuples = 10 WHERE oid = ANY ($1)"},
		{"filled", ""},
	}
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			if state.name == "filled" {
				exec(t, conn, "VACUUM ANALYZE")
			}
			exec(t, conn, "BEGIN")
			defer exec(t, conn, "ROLLBACK")
			for statement := range strings.SplitSeq(state.set, "; ") {
				if statement != "" {
					exec(t, conn, strings.ReplaceAll(statement, "$1", hotTables))
				}
			}
			for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
				for _, name := range hotNames() {
					exec(t, conn, "SET LOCAL plan_cache_mode = "+mode)
					var plan *node
					if state.name == "cached before the fill" && mode == "force_generic_plan" {
						plan = explainExecute(t, conn, name)
					} else {
						plan = explain(t, conn, name, mode)
					}
					checkIndexed(t, plan)
					if got, want := plan.indexes(), goldenIndexes(t, conn, name); !slices.Equal(got, want) {
						t.Errorf("%s, %s: indexes %v, golden %v\n%s", name, mode, got, want, plan.shape())
					}
				}
			}
		})
	}
}

const hotTables = "ARRAY['outbox.message'::regclass, 'outbox.queue'::regclass, 'outbox.settlement'::regclass, 'outbox.order_lease'::regclass, 'outbox.event'::regclass]"

// messages is how many messages the plans are made over: a million in the full run.
func messages() int {
	if os.Getenv("FENCEPOST_FULL") != "" {
		return 1_000_000
	}
	return 100_000
}

func planDatabase(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := connect(t, pgtest.New(t))
	// Statistics are the test's to set.
	for _, table := range []string{"message", "queue", "settlement", "order_lease", "event", "claim", "batch", "batch_row"} {
		exec(t, conn, "ALTER TABLE outbox."+table+" SET (autovacuum_enabled = off)")
	}
	return conn
}

// connect opens a session in which statements are prepared by name, so pgx is to keep none of its own.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// fill stores n messages: three in ten delivered, one in a hundred dead, one in ten deferred, one in two hundred parked, the rest pending; over
// ten tenants and three priorities, one in twenty with an order key. The statistics are those of other data when it returns.
func fill(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	const insert = `
INSERT INTO outbox.message (id, tenant, consumer, target, kind, key, order_key, priority, digest, payload)
SELECT i, 't' || i % 10, $3, 'g', 'k' || i % 3, 'key' || i, CASE WHEN i % 20 = 0 THEN 'o' || i % 1000 ELSE '' END, i % 3, decode(repeat('00', 32), 'hex'), 'x'
FROM generate_series($1::bigint, $2::bigint) AS i`
	const split = `
WITH settled AS (
    INSERT INTO outbox.settlement (message_id, outcome, cause, reason, epoch, attempt, replays, settled_at)
    SELECT id, CASE WHEN id % 100 = 1 THEN 'dead' ELSE 'delivered' END, CASE WHEN id % 100 = 1 THEN 'permanent' ELSE '' END,
        CASE WHEN id % 100 = 1 THEN 'no' ELSE '' END, 1, 1, 0, now() - id * interval '1 second'
    FROM outbox.message WHERE id % 10 < 3
)
INSERT INTO outbox.queue (message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, state)
SELECT id, consumer, target, kind, tenant, order_key, priority,
    now() + CASE WHEN id % 10 = 3 THEN interval '1 hour' ELSE interval '0' END, now() - interval '1 hour', CASE WHEN id % 200 = 5 THEN 1 ELSE 0 END
FROM outbox.message WHERE id % 10 >= 3`
	exec(t, conn, insert, 1, 1000, "other")
	exec(t, conn, split)
	exec(t, conn, "ANALYZE outbox.message, outbox.queue, outbox.settlement")
	exec(t, conn, "DELETE FROM outbox.queue")
	exec(t, conn, "DELETE FROM outbox.settlement")
	exec(t, conn, "DELETE FROM outbox.message")
	exec(t, conn, insert, 1, n, "c")
	exec(t, conn, split)
	fillEvents(t, conn, 100_000) // in the full run too
	fillBatches(t, conn)
}

// fillEvents stores n events, ten of each transaction, and as many claims, one in ten of them held.
func fillEvents(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	exec(t, conn, `
INSERT INTO outbox.event (position, transaction_id, tenant, stream, type, event_id, digest, payload)
SELECT i, 1 + i / 10, 't' || i % 10, 's' || i % 100, 'x', 'e' || i, decode(repeat('00', 32), 'hex'), 'x'
FROM generate_series(1, $1::bigint) AS i`, n)
	exec(t, conn, `
INSERT INTO outbox.claim (tenant, scope, key, digest, state, ended_at)
SELECT 't' || i % 10, 's', 'key' || i, decode(repeat('00', 32), 'hex'), 1, now() - i * interval '1 minute'
FROM generate_series(1, $1::bigint) AS i WHERE i % 10 <> 0`, n)
	exec(t, conn, `
INSERT INTO outbox.claim (tenant, scope, key, digest, token, held_until)
SELECT 't' || i % 10, 's', 'key' || i, decode(repeat('00', 32), 'hex'), decode(repeat('01', 16), 'hex'), now()
FROM generate_series(1, $1::bigint) AS i WHERE i % 10 = 0`, n)
}

// fillBatches stores batches, half of them completed, a hundred of them with a thousand messages each.
func fillBatches(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `
INSERT INTO outbox.batch (tenant, consumer, target, kind, key, digest, sealed_at, completed_at)
SELECT 't' || i % 10, 'c', 'g', 'k', 'key' || i, decode(repeat('00', 32), 'hex'), now(),
    CASE WHEN i % 2 = 0 THEN now() - i * interval '1 minute' ELSE '9999-12-31 00:00:00+00' END
FROM generate_series(1, 5000) AS i`)
	exec(t, conn, `
INSERT INTO outbox.batch_row (batch_id, number, message_id)
SELECT 1 + (i - 1) / 1000, 1 + (i - 1) % 1000, i
FROM generate_series(1, 100000) AS i`)
}

// A node is a plan node of EXPLAIN (FORMAT JSON), as far as the shape needs it.
type node struct {
	Type        string   `json:"Node Type"`
	Operation   string   `json:"Operation"`
	Subplan     string   `json:"Subplan Name"`
	Relation    string   `json:"Relation Name"`
	Index       string   `json:"Index Name"`
	Backwards   string   `json:"Scan Direction"`
	IndexCond   string   `json:"Index Cond"`
	OneTime     string   `json:"One-Time Filter"`
	ConflictVia []string `json:"Conflict Arbiter Indexes"`
	Plans       []*node  `json:"Plans"`
}

// column finds the columns of an index condition: an identifier that is followed by a comparison, or the expression of the lease's index.
var column = regexp.MustCompile(`\(message_id \+ 0\)|\b[a-z_]+\b`)

var columnNames = []string{
	"(message_id + 0)", "message_id", "id", "consumer", "target", "kind", "tenant", "priority", "due_at", "order_key", "key", "outcome", "settled_at", "name",
	"transaction_id", "position", "event_id", "scope", "ended_at", "held_until",
	"batch_id", "number", "fate", "completed_at",
}

func (n *node) shape() string {
	var b strings.Builder
	n.write(&b, 0)
	return b.String()
}

func (n *node) write(b *strings.Builder, depth int) {
	indent := strings.Repeat("  ", depth)
	if strings.HasPrefix(n.Subplan, "CTE ") {
		fmt.Fprintf(b, "%s%s\n", indent, n.Subplan)
		indent += "  "
		depth++
	}
	line := n.Type
	if n.Operation != "" {
		line = n.Operation
	}
	if n.Relation != "" {
		line += " " + n.Relation
	}
	if n.Index != "" {
		line += " by " + n.Index
	}
	if n.Backwards == "Backward" {
		line += " backwards"
	}
	if n.IndexCond != "" {
		line += " [" + strings.Join(conditions(n.IndexCond), ", ") + "]"
	}
	if len(n.ConflictVia) > 0 {
		line += " on conflict by " + strings.Join(n.ConflictVia, ", ")
	}
	fmt.Fprintf(b, "%s%s\n", indent, line)
	for _, child := range n.Plans {
		child.write(b, depth+1)
	}
}

// conditions are the columns that the condition bounds, in order, each once.
func conditions(condition string) []string {
	var columns []string
	// Qualified names are other relations' columns, strings are values.
	condition = regexp.MustCompile(`'[^']*'|\b[a-z_0-9]+\.[a-z_]+`).ReplaceAllString(condition, "")
	for _, name := range column.FindAllString(condition, -1) {
		if slices.Contains(columnNames, name) && !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	return columns
}

// indexes are the distinct pairs of relation and index that the plan reads.
func (n *node) indexes() []string {
	found := map[string]bool{}
	n.each(func(n *node) {
		if n.Index != "" {
			found[n.Index] = true
		}
	})
	return slices.Sorted(maps.Keys(found))
}

func (n *node) each(visit func(*node)) {
	visit(n)
	for _, child := range n.Plans {
		child.each(visit)
	}
}

// checkIndexed refuses a plan that reads a hot table otherwise than by an index it bounds or walks in order.
func checkIndexed(t *testing.T, plan *node) {
	t.Helper()
	plan.each(func(n *node) {
		hot := slices.Contains([]string{"message", "queue", "settlement", "order_lease", "event", "claim", "batch", "batch_row"}, n.Relation)
		if hot && (n.Type == "Seq Scan" || strings.HasPrefix(n.Type, "Bitmap")) {
			t.Errorf("%s of %s\n%s", n.Type, n.Relation, plan.shape())
		}
	})
}

// explain plans the statement anew and returns its plan.
func explain(t *testing.T, conn *pgx.Conn, name, mode string) *node {
	t.Helper()
	exec(t, conn, "SET plan_cache_mode = "+mode)
	exec(t, conn, "DEALLOCATE ALL")
	prepare(t, conn, name)
	return explainExecute(t, conn, name)
}

// prepare keeps the statement under its name in the session, planned with the settings of a transaction of our own.
func prepare(t *testing.T, conn *pgx.Conn, name string) {
	t.Helper()
	sql, _ := statement(t, name)
	exec(t, conn, "PREPARE plan_of_"+name+" AS "+trimmed(sql))
}

func explainExecute(t *testing.T, conn *pgx.Conn, name string) *node {
	t.Helper()
	_, args := statement(t, name)
	for _, setting := range []string{"enable_seqscan", "enable_bitmapscan", "enable_sort", "jit"} {
		value := "off"
		if slices.Contains(callersStatements, name) {
			value = "default"
		}
		exec(t, conn, "SET "+setting+" = "+value)
	}
	execute := "EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE plan_of_" + name
	if len(args) > 0 {
		execute += "(" + literals(args) + ")"
	}
	var document string
	if err := conn.QueryRow(t.Context(), execute).Scan(&document); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var plans []struct{ Plan *node }
	if err := json.Unmarshal([]byte(document), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// callersStatements run in the caller's transaction, without our planner settings.
var callersStatements = []string{
	"Enqueue", "EnqueueLeased", "FindKeys", "AppendEvents", "FindEvents", "SaveReader", "Claim", "TakeClaim", "EndClaim", "RecordClaim", "FindClaims",
	"AddBatchRows", "FindBatchRows",
}

// statement gives the text and the arguments that the generated method sends.
func statement(t *testing.T, name string) (string, []any) {
	t.Helper()
	var sent recorder
	method := reflect.ValueOf(gen.New()).MethodByName(name)
	in := []reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(&sent)}
	if method.Type().NumIn() == 3 {
		params, ok := planParams[name]
		if !ok {
			t.Fatalf("planParams has no arguments for %s: add them", name)
		}
		in = append(in, reflect.ValueOf(params))
	}
	method.Call(in)
	return sent.sql, sent.args
}

func statementNames() []string {
	var names []string
	for method := range reflect.TypeFor[*gen.Queries]().Methods() {
		names = append(names, method.Name)
	}
	return names
}

// hotNames are the statements of the sending path.
func hotNames() []string {
	return []string{
		"DueLanes", "LeaseDue", "LeaseSuccessors", "Renew", "Release", "SettleDelivered", "SettleDropped", "SettleRetry", "SettleDead", "SettleParked", "FindFates",
		"ReadEvents", "ReadEnd",
	}
}

// goldenFile is where the shape for this server's version stands: NAME.pg17.txt holds from PostgreSQL 17 on, NAME.txt before any such file.
func goldenFile(t *testing.T, conn *pgx.Conn, name string) string {
	t.Helper()
	for version := serverVersion(t, conn); version > 13; version-- {
		special := filepath.Join(goldens, fmt.Sprintf("%s.pg%d.txt", name, version))
		if _, err := os.Stat(special); err == nil {
			return special
		}
	}
	return filepath.Join(goldens, name+".txt")
}

func serverVersion(t *testing.T, conn *pgx.Conn) (version int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

func compareGolden(t *testing.T, conn *pgx.Conn, name, shape string) {
	t.Helper()
	file := goldenFile(t, conn, name)
	golden, err := os.ReadFile(file)
	switch {
	case err == nil && string(golden) == shape:
	case !*update:
		t.Errorf("the plan changed (%v); CONTRIBUTING.md says how to read one\ngolden %s:\n%s\nnow:\n%s", err, file, golden, shape)
	case serverVersion(t, conn) > baseVersion:
		file = filepath.Join(goldens, fmt.Sprintf("%s.pg%d.txt", name, serverVersion(t, conn)))
		fallthrough
	default:
		if err := os.WriteFile(file, []byte(shape), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// goldenIndexes are the indexes that the golden names.
func goldenIndexes(t *testing.T, conn *pgx.Conn, name string) []string {
	t.Helper()
	golden, err := os.ReadFile(goldenFile(t, conn, name))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)Scan (?:\w+ )?by (\w+)`).FindAllStringSubmatch(string(golden), -1) {
		found[match[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
