package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

func TestGrants(t *testing.T) {
	t.Parallel()
	golden(t, "grants", succeed(t, "grants"))
	other := succeed(t, "grants", "--schema", "Box-2", "--role-prefix", "Acme-")
	for _, want := range []string{`GRANT USAGE ON SCHEMA "Box-2" TO "Acme-producer", `, `FROM PUBLIC, "Acme-producer", `, `'Acme-repair'`, `'"Box-2"'::regnamespace`} {
		if !strings.Contains(other, want) {
			t.Errorf("no %s in\n%s", want, other)
		}
	}
	if strings.Contains(other, "outbox_") || strings.Contains(other, "outbox.") {
		t.Errorf("the default names are left in\n%s", other)
	}
	if text := succeed(t, "grants", "--schema", "billing"); !strings.Contains(text, `"billing_sender"`) {
		t.Error("the prefix does not follow the schema")
	}
}

// A role that lacks a right is told so in one line that says what to do, and nothing is changed.
func TestC67Commands(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	as := pgtest.Roles(t, f.dsn)
	allowed := map[string][]string{
		"status": {"migrator", "sender", "operator", "janitor", "viewer"},
		"list":   {"migrator", "sender", "operator", "janitor", "viewer"},
		"show":   {"migrator", "sender", "operator"},
		"worker": {"migrator", "sender", "operator", "janitor", "viewer"},
	}
	for _, role := range []string{"migrator", "producer", "sender", "operator", "janitor", "viewer", "repair"} {
		sharePool(t, as(role))
		for _, args := range [][]string{{"status"}, {"list"}, {"show", "4"}, {"worker", "list"}} {
			r := command(t, append(args, "--dsn", as(role))...)
			if may := slices.Contains(allowed[args[0]], role); may && (r.code != exitOK || r.stdout == "") {
				t.Errorf("%s as %s: code %d, %s", args[0], role, r.code, r.stderr)
			} else if !may && (r.code != exitFailed || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
				!strings.Contains(r.stderr, "permission denied for ") || !strings.Contains(r.stderr, "fencepost grants prints which role has it")) {
				t.Errorf("%s as %s: code %d, %s%s", args[0], role, r.code, r.stderr, r.stdout)
			}
		}
	}
	before := f.dump(t)
	for _, args := range [][]string{
		{"replay", "5"}, {"replay", "--all", "--yes"}, {"resolve", "6", "--as", "delivered"}, {"resolve", "6", "--as", "retry"}, {"cancel", "1"},
		{"cancel", "--kind", "charge", "--yes"}, {"pause", "--all"}, {"resume", "--kind", "mail"}, {"release", "--worker", "worker-1"},
		{"unblock", "--consumer", "shop", "--target", "warehouse", "--order-key", "customer-1"},
		{"worker", "add", "mailer", "--consumer", "shop"}, {"worker", "revoke", "mailer"},
	} {
		for _, role := range []string{"producer", "sender", "janitor", "viewer", "repair"} {
			r := command(t, append(args, "--reason", "a test", "--dsn", as(role))...)
			if r.code != exitFailed || !strings.Contains(r.stderr, "permission denied for ") {
				t.Errorf("%v as %s: code %d, %s%s", args, role, r.code, r.stderr, r.stdout)
			}
		}
	}
	for _, role := range []string{"producer", "sender", "operator", "viewer", "repair"} {
		if r := command(t, "purge", "--yes", "--dsn", as(role)); r.code != exitFailed || !strings.Contains(r.stderr, "permission denied for ") {
			t.Errorf("purge as %s: code %d, %s", role, r.code, r.stderr)
		}
	}
	for _, role := range []string{"sender", "operator", "janitor", "viewer", "repair"} {
		line := strings.NewReader(`{"consumer": "shop", "target": "bank", "kind": "charge", "key": "one more"}`)
		if r := commandWith(t.Context(), line, "enqueue", "--dsn", as(role)); r.code != exitFailed || !strings.Contains(r.stderr, "permission denied for ") {
			t.Errorf("enqueue as %s: code %d, %s", role, r.code, r.stderr)
		}
	}
	if after := f.dump(t); after != before {
		t.Errorf("what was refused changed\n%s\nto\n%s", before, after)
	}
	for role, args := range map[string][]string{"janitor": {"purge", "--yes"}, "operator": {"replay", "5", "--reason", "a test"}} {
		succeed(t, append(args, "--dsn", as(role))...)
	}
	succeed(t, "worker", "add", "mailer", "--consumer", "shop", "--reason", "a test", "--dsn", as("operator"))
	succeed(t, "worker", "revoke", "mailer", "--reason", "a test", "--dsn", as("operator"))
	if r := command(t, "show", "4", "--dsn", as("viewer")); !strings.Contains(r.stderr, "viewers may not; list shows the rest") {
		t.Error(r.stderr)
	}
}
