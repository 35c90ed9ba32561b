package pgxdb

import (
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A renewal that waits for a locked row beyond the end of its lease, while a message of the same order key that committed late is leased, does
// not come back as renewed: two messages of one key would run.
func TestRenewalThatWaitsWhileItsOrderKeyGoes(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	conn := connect(t, dsn)
	store, err := New(newPool(t, dsn), Config{})
	if err != nil {
		t.Fatal(err)
	}
	beside := connect(t, dsn)
	insert := func(id int64) {
		exec(t, beside, `INSERT INTO outbox.message (id, consumer, target, kind, key, order_key, digest)
			VALUES ($1, 'c', 'g', 'k', $1::bigint::text, 'o', decode(repeat('00', 32), 'hex'))`, id)
		exec(t, beside, "INSERT INTO outbox.queue (message_id, consumer, target, kind, order_key) VALUES ($1, 'c', 'g', 'k', 'o')", id)
	}
	await := func(condition string) {
		for met := false; !met; {
			if err := beside.QueryRow(t.Context(), "SELECT "+condition).Scan(&met); err != nil {
				t.Fatal(err)
			}
		}
	}
	lease := func(length time.Duration) []db.LeaseDueRow {
		params := planParams["LeaseDue"].(gen.LeaseDueParams)
		params.Kinds, params.Tenants, params.Lease = []string{"k", "none"}, []string{"", ""}, length.Microseconds()
		rows, err := store.LeaseDue(t.Context(), db.LeaseDueParams(params))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	insert(2)
	if rows := lease(2 * time.Second); rows[0].ID != 2 || rows[0].Fate != db.FateGranted {
		t.Fatalf("leased %+v", rows)
	}

	exec(t, conn, "BEGIN")
	exec(t, conn, "SELECT FROM outbox.queue WHERE message_id = 2 FOR UPDATE")
	renewed := make(chan []db.RenewRow, 1)
	go func() {
		rows, err := store.Renew(t.Context(), db.RenewParams{Ids: []int64{2}, Tokens: token, Lease: time.Minute.Microseconds(), LongestLease: db.LongestLease.Microseconds()})
		if err != nil {
			t.Error(err)
		}
		renewed <- rows
	}()
	await("EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
	await("(SELECT leased_until <= clock_timestamp() FROM outbox.queue WHERE message_id = 2)")
	insert(1)
	if rows := lease(time.Minute); rows[0].ID != 1 || rows[0].Fate != db.FateGranted {
		t.Fatalf("leased %+v", rows)
	}
	exec(t, conn, "COMMIT")
	if rows := <-renewed; len(rows) != 0 {
		t.Errorf("renewed %+v while message 1 runs", rows)
	}
}
