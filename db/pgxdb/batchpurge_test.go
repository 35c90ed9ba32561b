package pgxdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A batch that a replay opens while the janitor comes to it keeps all its rows.
func TestPurgeOfBatchesBesideAReplay(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := begin(t, pool, store, pgx.ReadCommitted, false)
	b.end(pool, 0)
	b.end(pool, 1)
	b.exec("UPDATE outbox.batch SET completed_at = '2001-01-01' WHERE completed_at < '9999-12-31'")
	if _, err := b.old.Exec(t.Context(), `
WITH back AS (DELETE FROM outbox.settlement WHERE message_id = $1 RETURNING message_id)
INSERT INTO outbox.queue (message_id, consumer, target, kind)
SELECT m.id, m.consumer, m.target, m.kind FROM outbox.message AS m WHERE m.id = (SELECT message_id FROM back)`, b.ids[2]); err != nil {
		t.Fatal(err)
	}
	purge := func() db.PurgeBatchesRow {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		rows, err := store.PurgeBatches(ctx, db.PurgeBatchesParams{SchemaName: "outbox", AllTenants: true, MaxRows: 10})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%+v, %v", rows, err)
		}
		return rows[0]
	}
	if got := purge(); got != (db.PurgeBatchesRow{}) {
		t.Errorf("removed %+v", got)
	}
	if err := b.old.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := purge(); got != (db.PurgeBatchesRow{}) {
		t.Errorf("then removed %+v", got)
	}
	b.end(pool, 2)
	if rows, err := store.CountBatch(t.Context(), db.CountBatchParams{ID: b.batch, AllTenants: true}); err != nil || rows[0].Total != 3 || rows[0].Run != 2 || rows[0].CompletedAt.Year() == 9999 {
		t.Errorf("%+v, %v", rows, err)
	}
	if got := purge(); got != (db.PurgeBatchesRow{Batches: 1, RowsRemoved: 3}) {
		t.Errorf("in the end removed %+v", got)
	}
}
