package main

import "testing"

// Shows: S4.25
func TestPurge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sql(t, "UPDATE outbox.settlement SET settled_at = settled_at - interval '8 days'")
	f.sql(t, "UPDATE outbox.settlement SET settled_at = settled_at - interval '30 days' WHERE message_id = 9")
	f.sql(t, "UPDATE outbox.queue SET born_at = born_at - interval '3 days', expires_at = expires_at - interval '3 days' WHERE message_id = 1")
	s := transcript{t: t, dsn: f.dsn}
	s.run("purge")
	s.run("purge", "--dry-run")
	s.run("purge", "--dry-run", "--dead", "24h", "--cancelled", "none", "--json")
	s.run("purge", "--dry-run", "--tenant", "acme")
	s.run("purge", "--yes")
	s.run("purge", "--yes", "--dead", "24h", "--cancelled", "24h", "--json")
	s.run("list", "--state", "expired")
	other, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback(t.Context())
	if _, err := other.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended('fencepost janitor outbox', 0))"); err != nil {
		t.Fatal(err)
	}
	s.run("purge", "--yes")
	golden(t, "purge", s.String())
}
