package main

import (
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

func TestPauseAndResume(t *testing.T) { onEach(t, testPauseAndResume) }

func testPauseAndResume(t *testing.T, f fixture) {
	f.fill(t)
	s := transcript{t: t, dsn: f.dsn}
	s.run("pause", "--all", "--cancel-running", "--reason", "this is a copy", "--actor", "ann")
	s.run("pause", "--consumer", "shop", "--tenant", "acme", "--reason", "asked by acme", "--actor", "ann", "--json")
	s.run("pause", "--tenant", "", "--reason", "asked by nobody", "--actor", "ann")
	s.run("resume", "--kind", "charge", "--reason", "was it paused?", "--actor", "ann")
	s.run("resume", "--all", "--reason", "the copy has targets of its own", "--actor", "ann")
	s.run("resume", "--consumer", "shop", "--tenant", "acme", "--reason", "asked by acme", "--actor", "ann", "--json")
	s.WriteString(f.audits(t) + "\n")
	golden(t, "pause", s.String())
}

func TestRelease(t *testing.T) { onEach(t, testRelease) }

func testRelease(t *testing.T, f fixture) {
	f.fill(t)
	s := transcript{t: t, dsn: f.dsn}
	s.run("release", "--worker", "worker-9", "--reason", "its machine burnt", "--actor", "ann")
	s.run("release", "--worker", "worker-1", "--tenant", "acme", "--reason", "its machine burnt", "--actor", "ann", "--json")
	s.run("release", "--worker", "worker-1", "--reason", "its machine burnt", "--actor", "ann", "--json")
	s.run("release", "--worker", "worker-1", "--reason", "its machine burnt", "--actor", "ann")
	s.WriteString(f.audits(t) + "\n")
	golden(t, "release", s.String())
	if leased := f.lease(t, f.consumer(t), "pack"); len(leased) != 1 || leased[0].Attempt != 2 || !leased[0].Unsure {
		t.Errorf("leased %v", leased)
	}
}

func TestUnblock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.block(t, "customer-7")
	s := transcript{t: t, dsn: f.dsn}
	s.run("unblock", "--consumer", "shop", "--target", "warehouse", "--order-key", "customer-7", "--tenant", "acme", "--reason", "by hand", "--actor", "ann")
	s.run("unblock", "--consumer", "shop", "--target", "warehouse", "--order-key", "customer-7", "--reason", "by hand", "--actor", "ann", "--json")
	s.run("unblock", "--consumer", "shop", "--target", "warehouse", "--order-key", "customer-7", "--reason", "by hand", "--actor", "ann")
	s.WriteString(f.audits(t) + "\n")
	golden(t, "unblock", s.String())
}

// block lets a parked message of an order key die and keep the key.
func (f fixture) block(t *testing.T, key string) {
	t.Helper()
	f.enqueue(t, outbox.Effect{Kind: "book", Key: "block-" + key, OrderKey: key})
	f.sql(t, "UPDATE outbox.queue SET state = 1 WHERE order_key = $1", key)
	succeed(t, "resolve", "--kind", "book", "--as", "dead-blocking", "--yes", "--reason", "a test", "--actor", operator.Actor, "--dsn", f.dsn)
}
