package pgxdb

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// soundTables hold message 1 pending, 2 leased with its order key, 3 delivered, and 4 dead, which blocks its key.
const soundTables = `
INSERT INTO outbox.message (id, consumer, target, kind, key, order_key, digest)
SELECT i, 'c', 't', 'k', 'key' || i, CASE i WHEN 2 THEN 'a' WHEN 4 THEN 'b' ELSE '' END, decode(repeat('00', 32), 'hex')
FROM generate_series(1, 4) AS i;
INSERT INTO outbox.queue (message_id, consumer, target, kind) VALUES (1, 'c', 't', 'k');
INSERT INTO outbox.queue (message_id, consumer, target, kind, order_key, token, leased_until, epoch, attempt)
VALUES (2, 'c', 't', 'k', 'a', decode(repeat('11', 16), 'hex'), now() + interval '1 hour', 1, 1);
INSERT INTO outbox.settlement (message_id, epoch, attempt, replays, outcome, cause, reason)
VALUES (3, 1, 1, 0, 'delivered', '', ''), (4, 1, 1, 0, 'dead', 'moot', 'r');
INSERT INTO outbox.order_lease (consumer, target, tenant, order_key, message_id, leased_until, blocked)
SELECT 'c', 't', '', 'a', 2, leased_until, false FROM outbox.queue WHERE message_id = 2
UNION ALL SELECT 'c', 't', '', 'b', 4, '0001-01-01 00:00:00+00', true`

func TestAuditFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	conn := connect(t, dsn)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := New(pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	// problems looks at so many rows at a time.
	problems := func(examine int32) (all []string) {
		t.Helper()
		for after := int64(0); ; {
			rows, err := store.AuditMessages(t.Context(), db.AuditMessagesParams{AfterID: after, Examine: examine})
			if err != nil {
				t.Fatal(err)
			}
			last := len(rows) - 1
			for _, row := range rows[:last] {
				all = append(all, strconv.FormatInt(row.ID, 10)+" "+row.Problem)
			}
			if rows[last].ID == 0 {
				slices.Sort(all)
				return all
			}
			after = rows[last].ID
		}
	}
	for spoil, want := range map[string][]string{
		"SELECT 1": nil,
		"DELETE FROM outbox.queue WHERE message_id = 1":                                           {"1 message is neither open nor settled"},
		"DELETE FROM outbox.settlement WHERE message_id = 3":                                      {"3 message is neither open nor settled"},
		"INSERT INTO outbox.queue (message_id, consumer, target, kind) VALUES (3, 'c', 't', 'k')": {"3 message is open and settled"},
		"DELETE FROM outbox.message WHERE id = 1":                                                 {"1 queue row has no message"},
		"DELETE FROM outbox.message WHERE id = 3":                                                 {"3 settlement has no message"},
		"UPDATE outbox.settlement SET message_id = 9 WHERE message_id = 3":                        {"3 message is neither open nor settled", "9 settlement has no message"},
		"UPDATE outbox.queue SET kind = 'x' WHERE message_id = 1":                                 {"1 message is queued in another lane than its own"},
		"UPDATE outbox.queue SET priority = 1 WHERE message_id = 1":                               {"1 message is queued in another lane than its own"},
		"UPDATE outbox.settlement SET epoch = 0 WHERE message_id = 3":                             {"3 message settled at an attempt beyond its epoch"},
		"DELETE FROM outbox.order_lease WHERE message_id = 2":                                     {"2 message has a live lease without that of its order key"},
		"UPDATE outbox.order_lease SET order_key = 'x' WHERE message_id = 4":                      {"4 order lease is of another key than its message"},
		"UPDATE outbox.order_lease SET message_id = 9 WHERE message_id = 4":                       {"9 message blocks its order key and is not dead", "9 order lease is of another key than its message"},
		"UPDATE outbox.settlement SET outcome = 'cancelled', cause = '' WHERE message_id = 4":     {"4 message blocks its order key and is not dead"},
		"UPDATE outbox.order_lease SET leased_until = now() WHERE message_id = 2":                 {"2 order lease is not that of its message"},
		"UPDATE outbox.order_lease SET blocked = false WHERE message_id = 4":                      {"4 order lease is not that of its message"},
	} {
		exec(t, conn, "TRUNCATE outbox.message, outbox.queue, outbox.settlement, outbox.order_lease")
		for statement := range strings.SplitSeq(soundTables, ";\n") {
			exec(t, conn, statement)
		}
		exec(t, conn, spoil)
		for _, examine := range []int32{1, 2, 1000} {
			if got := problems(examine); !slices.Equal(got, want) {
				t.Errorf("%s, %d at a time: found %q, want %q", spoil, examine, got, want)
			}
		}
	}
}
