package pgxdb

import (
	"slices"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A lane that was examined up to the bound is told also when a later lane fills the pass: taken for drained, it would be passed by for as long
// as the other one is busy.
func TestBoundBesideALaneThatFillsThePass(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	conn := connect(t, dsn)
	// Lane k1 starts with three leased messages; lane k2 has more than the pass may take.
	exec(t, conn, `INSERT INTO outbox.message (id, consumer, target, kind, key, digest)
		SELECT i, 'c', 'g', CASE WHEN i <= 4 THEN 'k1' ELSE 'k2' END, i::text, decode(repeat('00', 32), 'hex') FROM generate_series(1::bigint, 10) AS i`)
	exec(t, conn, `INSERT INTO outbox.queue (message_id, consumer, target, kind, epoch, attempt, token, leased_until)
		SELECT id, consumer, target, kind, 1, 1,
			CASE WHEN id <= 3 THEN decode(repeat('01', 16), 'hex') ELSE decode(repeat('00', 16), 'hex') END,
			CASE WHEN id <= 3 THEN now() + interval '1 minute' ELSE '0001-01-01 00:00:00+00' END
		FROM outbox.message`)
	store, err := New(newPool(t, dsn), Config{})
	if err != nil {
		t.Fatal(err)
	}
	params := planParams["LeaseDue"].(gen.LeaseDueParams)
	params.Kinds, params.Tenants, params.Priorities = []string{"k1", "k2"}, []string{"", ""}, []int16{0, 0}
	params.Examine, params.MaxRows = 3, 2
	rows, err := store.LeaseDue(t.Context(), db.LeaseDueParams(params))
	if err != nil {
		t.Fatal(err)
	}
	bound := slices.IndexFunc(rows, func(r db.LeaseDueRow) bool { return r.Fate == db.FateBound })
	if len(rows) != 4 || bound < 0 || rows[bound].LaneNo != 1 || rows[bound].ID != 3 {
		t.Errorf("bound at %d of %+v", bound, rows)
	}
}
