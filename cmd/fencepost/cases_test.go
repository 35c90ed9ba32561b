package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// C80: a copy of production on staging sent real messages. One command stops everything, and nothing is sent until it is told to.
// Shows: S4.26
func TestC80CopiedDatabaseSendsNothing(t *testing.T) {
	t.Parallel()
	original := newFixture(t)
	original.sql(t, "UPDATE outbox.queue SET due_at = created_at FROM outbox.message AS m WHERE m.id = message_id")
	copied := copyDatabase(t, original)
	succeed(t, "pause", "--all", "--cancel-running", "--reason", "this is a copy", "--dsn", copied.dsn)
	copied.sql(t, "UPDATE outbox.queue SET leased_until = now() - interval '1 s' WHERE message_id = 8")

	var performed []int64
	var mu sync.Mutex
	perform := sender.Handler{Do: func(_ context.Context, m outbox.Message) error {
		mu.Lock()
		defer mu.Unlock()
		performed = append(performed, m.ID)
		return nil
	}}
	s, err := sender.New(copied.box, copied.consumer(t), sender.Config{
		Handlers: sender.Handlers{"charge": perform, "mail": perform, "pack": perform}, Scope: outbox.AllTenants,
	})
	if err != nil {
		t.Fatal(err)
	}
	before := copied.rows(t, "SELECT q::text FROM outbox.queue AS q ORDER BY message_id")
	for range 3 {
		if _, err := s.RunOnce(t.Context()); err != nil || len(performed) > 0 {
			t.Fatalf("performed %v, %v", performed, err)
		}
	}
	if after := copied.rows(t, "SELECT q::text FROM outbox.queue AS q ORDER BY message_id"); after != before {
		t.Errorf("the queue was\n%s\nand is\n%s", before, after)
	}
	succeed(t, "resume", "--all", "--reason", "it has targets of its own", "--dsn", copied.dsn)
	if _, err := s.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(performed); !slices.Equal(performed, []int64{1, 3, 8}) { // mail is paused by itself
		t.Errorf("after resume performed %v", performed)
	}
}

// copyDatabase is what a dump and a restore give: all rows, leased ones too.
func copyDatabase(t *testing.T, original fixture) fixture {
	t.Helper()
	original.pool.Close()
	address, err := url.Parse(original.dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	address.Path = "/postgres"
	admin, err := pgx.Connect(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	drop := func(admin *pgx.Conn) error {
		_, err := admin.Exec(context.Background(), fmt.Sprintf(`DROP DATABASE IF EXISTS %q WITH (FORCE)`, name+"_copy"))
		return err
	}
	if _, err := admin.Exec(t.Context(), fmt.Sprintf(`CREATE DATABASE %q TEMPLATE %q`, name+"_copy", name)); err != nil {
		t.Fatal(err)
	}
	maintenance := address.String()
	t.Cleanup(func() {
		admin, err := pgx.Connect(context.Background(), maintenance)
		if err == nil {
			defer admin.Close(context.Background())
			err = drop(admin)
		}
		if err != nil {
			t.Error(err)
		}
	})
	address.Path = "/" + name + "_copy"
	return openFixture(t, address.String())
}

// impatient makes sessions give up a wait for a row.
func impatient(t *testing.T, dsn string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("lock_timeout", "200ms")
	address.RawQuery = query.Encode()
	return address.String()
}

// C80: bulk verbs ran over everything with no filter, no confirmation and no useful exit code.
func TestC80BulkVerbsTakeNothingByAccident(t *testing.T) {
	t.Parallel()
	const n = 1500
	verbs := map[string][]string{
		"replay":  {"replay", "--reason", "r"},
		"resolve": {"resolve", "--reason", "r", "--as", "retry"},
		"cancel":  {"cancel", "--reason", "r"},
	}
	for verb, args := range verbs {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.many(t, "bulk", n)
			switch verb {
			case "replay":
				f.bury(t, "bulk", "attempts")
			case "resolve":
				f.sql(t, "UPDATE outbox.queue SET state = 1 WHERE kind = 'bulk'")
			}
			args := append(args, "--dsn", f.dsn)
			closed, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer closed.Close()
			before := f.dump(t)
			for name, test := range map[string]struct {
				stdin *os.File
				flags []string
			}{
				"no filter":              {nil, nil},
				"no filter but --yes":    {nil, []string{"--yes"}},
				"a filter without --yes": {nil, []string{"--kind", "bulk"}},
				"all without --yes":      {nil, []string{"--all"}},
				"all with closed stdin":  {closed, []string{"--all"}},
				"an empty variable":      {nil, []string{"--kind", "", "--yes"}},
				"a blank variable":       {nil, []string{"--consumer", " ", "--yes"}},
				"an empty tenant":        {nil, []string{"--tenant", "", "--yes"}},
				"all beside a filter":    {nil, []string{"--all", "--kind", "bulk", "--yes"}},
				"ids beside a filter":    {nil, []string{"5", "--kind", "bulk", "--yes"}},
				"ids beside --dry-run":   {nil, []string{"5", "--dry-run"}},
				"a limit alone":          {nil, []string{"--limit", "5", "--yes"}},
				"a place alone":          {nil, []string{"--after", "5", "--yes"}},
				"an age of zero":         {nil, []string{"--older-than", "0", "--yes"}},
				"an age in the future":   {nil, []string{"--older-than", "-1h", "--yes"}},
			} {
				stdin := io.Reader(strings.NewReader("y\n"))
				if test.stdin != nil {
					stdin = test.stdin
				}
				r := commandWith(t.Context(), stdin, append(args, test.flags...)...)
				if r.code != exitUsage || r.stdout != "" {
					t.Errorf("%s: code %d, %s%s", name, r.code, r.stdout, r.stderr)
				}
			}
			for name, flags := range map[string][]string{"filter": {"--kind", "bulk"}, "all": {"--all"}} {
				if r := decode[actReport](t, append(append(args, flags...), "--dry-run")...); r.Matched < n || name == "filter" && r.Matched != n {
					t.Errorf("dry run of %s: %+v", name, r)
				}
			}
			if after := f.dump(t); after != before {
				t.Error("something was changed")
			}

			// One message that cannot be changed: its batch is not, and the exit code says so.
			table, offset := "queue", 1200
			if verb == "replay" { // which begins at the other end
				table, offset = "settlement", 200
			}
			unlock := f.lock(t, fmt.Sprintf(`SELECT FROM outbox.%s
				WHERE message_id = (SELECT id FROM outbox.message WHERE kind = 'bulk' ORDER BY id OFFSET %d LIMIT 1) FOR UPDATE`, table, offset))
			stuck := command(t, append(args, "--kind", "bulk", "--yes", "--dsn", impatient(t, f.dsn))...)
			if stuck.code != exitFailed || !strings.Contains(stuck.stdout, " 1,000 of 1,000 messages\nmore: --after ") ||
				!strings.Contains(stuck.stderr, "lock timeout") || strings.Count(stuck.stderr, "\n") != 1 {
				t.Errorf("stuck: code %d, %s%s", stuck.code, stuck.stdout, stuck.stderr)
			}
			unlock()
			dry := decode[actReport](t, append(args, "--kind", "bulk", "--dry-run")...)
			if dry.Matched != n-1000 {
				t.Errorf("left: %+v", dry)
			}
			real := decode[actReport](t, append(args, "--kind", "bulk", "--yes")...)
			if real.Matched != dry.Matched || real.Done != dry.Matched {
				t.Errorf("the dry run counted %d, the real one %+v", dry.Matched, real)
			}
			if r := command(t, append(args, "--kind", "bulk", "--yes")...); r.code != exitNotDone {
				t.Errorf("with nothing left: code %d, %s", r.code, r.stderr)
			}
			audited := f.rows(t, `SELECT concat_ws(' ', count(*), count(DISTINCT message_id)) FROM outbox.audit
				WHERE action = $1 AND reason = 'r'`, verb)
			if audited != fmt.Sprint(n, " ", n) {
				t.Errorf("audited %s", audited)
			}
		})
	}
}
