package pgxdb

import (
	"os"
	"testing"

	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A backlog of one order key, of which a single message may run, stands before the other messages of a lane. A pass examines a bounded number
// of its entries, so that a lease reads at most five times the pages of one beside none: 100,000 messages in the full run.
func TestLeaseBesideOneOrderKey(t *testing.T) {
	t.Parallel()
	backlog := 10_000
	if os.Getenv("FENCEPOST_FULL") != "" {
		backlog = 100_000
	}
	conn := connect(t, pgtest.New(t))
	// Tenant none has 1,000 ordinary messages, tenant some as many behind the backlog.
	exec(t, conn, `INSERT INTO outbox.message (id, tenant, consumer, target, kind, key, order_key, digest)
		SELECT i, CASE WHEN i <= 1000 THEN 'none' ELSE 'some' END, 'c', 'g', 'k', i::text, CASE WHEN i <= 2000 THEN '' ELSE 'o' END,
			decode(repeat('00', 32), 'hex')
		FROM generate_series(1::bigint, 2000 + $1) AS i`, backlog)
	exec(t, conn, `INSERT INTO outbox.queue (message_id, tenant, consumer, target, kind, order_key, due_at)
		SELECT id, tenant, consumer, target, kind, order_key, now() - CASE WHEN order_key = '' THEN interval '0' ELSE interval '1 hour' END
		FROM outbox.message`)
	exec(t, conn, "VACUUM ANALYZE")

	read := func(tenant string) int {
		params := planParams["LeaseDue"].(gen.LeaseDueParams)
		params.Kinds, params.Tenants, params.Priorities = []string{"k", "k"}, []string{tenant, "nobody"}, []int16{0, 0}
		_, buffers := analyse(t, conn, "force_generic_plan", params)
		return buffers
	}
	beside := func(head string, none int) {
		some := read("some")
		t.Logf("head %s: %d buffers, %d beside none", head, some, none)
		if some > 5*none {
			t.Errorf("head %s: %d buffers are more than five times %d", head, some, none)
		}
	}
	none := read("none")
	beside("free", none)
	exec(t, conn, `UPDATE outbox.queue
		SET attempt = 1, epoch = 1, token = decode(repeat('01', 16), 'hex'), leased_until = now() + interval '1 minute'
		WHERE message_id = 2001`)
	beside("leased", none)
}
