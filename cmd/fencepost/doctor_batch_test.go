package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// batch begins a batch.
func (f fixture) batch(t *testing.T, key string) int64 {
	t.Helper()
	rows, err := f.on.store.AddBatch(t.Context(), db.AddBatchParams{
		Consumer: "shop", Target: "mail", Kind: "note", Key: key, Digest: make([]byte, 32), CompleteDigest: []byte{}, CompletePayload: []byte{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows[0].ID
}

func TestDoctorLooksAtBatches(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	expect := func(l level, words string) {
		t.Helper()
		if got := findings(t, "--dsn", f.dsn)["batches"]; got.Level != l || !strings.Contains(got.Finding+"\n"+strings.Join(got.Details, "\n"), words) {
			t.Errorf("%+v\nwant %s, %q", got, l, words)
		}
	}
	id := f.batch(t, "letters")
	expect(levelOK, "all are sealed within 1h")
	f.age(t, 2*time.Hour)
	expect(levelWarning, "letters of shop, tenant -, begun 2h")
	f.sql(t, "ALTER TABLE outbox.batch DISABLE TRIGGER batch_sealed")
	f.sql(t, "UPDATE outbox.batch SET sealed_at = now()")
	expect(levelCritical, fmt.Sprintf("%d, letters of shop", id))
	f.sql(t, "UPDATE outbox.batch SET completed_at = now()")
	expect(levelOK, "all are sealed within 1h")
}

// What becomes of the rows of a batch is told where it was begun, so it completes there first.
func TestMoveRefusesOpenBatches(t *testing.T) {
	t.Parallel()
	file, dsn := openFileFixture(t), pgtest.New(t)
	id := file.batch(t, "letters")
	r := command(t, "move", "--from", file.dsn, "--to", dsn)
	if paused := file.rows(t, "SELECT count(*) FROM outbox.pause"); r.code != exitNotDone || !strings.Contains(r.stderr, "1 batches are not completed") || paused != "0" {
		t.Errorf("exit %d, %s pauses, %s", r.code, paused, r.stderr)
	}
	if _, err := file.on.store.SealBatch(t.Context(), db.SealBatchParams{ID: id, AllTenants: true}); err != nil {
		t.Fatal(err)
	}
	succeed(t, "move", "--from", file.dsn, "--to", dsn)
}
