package pgxdb

import (
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A lease of the longest length that another worker takes after a pass began, and before its statement looks, ends further ahead of the pass's
// now() than the longest lease. It is no sign of a clock that stepped back: the message stays with the one who holds it.
func TestLongestLeaseTakenSinceThePassBegan(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	conn := connect(t, dsn)
	exec(t, conn, "INSERT INTO outbox.message (id, consumer, target, kind, key, digest) VALUES (1, 'c', 'g', 'k', 'one', decode(repeat('00', 32), 'hex'))")
	exec(t, conn, "INSERT INTO outbox.queue (message_id, consumer, target, kind) VALUES (1, 'c', 'g', 'k')")
	store, err := New(newPool(t, dsn), Config{})
	if err != nil {
		t.Fatal(err)
	}
	params := planParams["LeaseDue"].(gen.LeaseDueParams)
	params.Kinds, params.Tenants = []string{"k", "none"}, []string{"", ""}
	params.Lease, params.LongestLease = db.LongestLease.Microseconds(), db.LongestLease.Microseconds()

	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	rows, err := store.LeaseDue(t.Context(), db.LeaseDueParams(params))
	if err != nil || len(rows) != 2 || rows[0].Fate != db.FateGranted {
		t.Fatalf("leased %+v, %v", rows, err)
	}
	again, err := gen.New().LeaseDue(t.Context(), tx, params)
	if err != nil || len(again) != 1 {
		t.Errorf("a pass that began before picked %+v, %v", again, err)
	}
}
