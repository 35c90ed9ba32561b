package sqlitedb

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/schema"
)

// installed is a store on a new file with its tables.
func installed(t *testing.T) *Store {
	t.Helper()
	store, err := Open(filepath.Join(t.TempDir(), "shop.db"), Config{Synchronous: Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return store
}

func exec(t *testing.T, store *Store, statements string) {
	t.Helper()
	if _, err := store.DB().ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// soundTables hold message 1 pending, 2 leased with its order key, 3 delivered, and 4 dead, which blocks its key.
const soundTables = `
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
INSERT INTO outbox_message (id, created_at, consumer, target, kind, key, order_key, digest)
SELECT i, 1700000000000000, 'c', 't', 'k', 'key' || i, CASE i WHEN 2 THEN 'a' WHEN 4 THEN 'b' ELSE '' END, zeroblob(32) FROM n;
INSERT INTO outbox_queue (message_id, due_at, born_at, consumer, target, kind) VALUES (1, 1700000000000000, 1700000000000000, 'c', 't', 'k');
INSERT INTO outbox_queue (message_id, due_at, born_at, consumer, target, kind, order_key, token, leased_until, epoch, attempt)
VALUES (2, 1700000000000000, 1700000000000000, 'c', 't', 'k', 'a', x'11111111111111111111111111111111', 253402214400000000, 1, 1);
INSERT INTO outbox_settlement (message_id, settled_at, epoch, attempt, replays, outcome, cause, reason)
VALUES (3, 1700000000000000, 1, 1, 0, 'delivered', '', ''), (4, 1700000000000000, 1, 1, 0, 'dead', 'moot', 'r');
INSERT INTO outbox_order_lease (consumer, target, tenant, order_key, message_id, leased_until, blocked)
VALUES ('c', 't', '', 'a', 2, 253402214400000000, 0), ('c', 't', '', 'b', 4, -62135596800000000, 1)`

func TestAuditFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	store := installed(t)
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
		"DELETE FROM outbox_queue WHERE message_id = 1":      {"1 message is neither open nor settled"},
		"DELETE FROM outbox_settlement WHERE message_id = 3": {"3 message is neither open nor settled"},
		"INSERT INTO outbox_queue (message_id, due_at, born_at, consumer, target, kind) VALUES (3, 1700000000000000, 1700000000000000, 'c', 't', 'k')": {"3 message is open and settled"},
		"DELETE FROM outbox_message WHERE id = 1":                                             {"1 queue row has no message"},
		"DELETE FROM outbox_message WHERE id = 3":                                             {"3 settlement has no message"},
		"UPDATE outbox_settlement SET message_id = 9 WHERE message_id = 3":                    {"3 message is neither open nor settled", "9 settlement has no message"},
		"UPDATE outbox_queue SET kind = 'x' WHERE message_id = 1":                             {"1 message is queued in another lane than its own"},
		"UPDATE outbox_queue SET priority = 1 WHERE message_id = 1":                           {"1 message is queued in another lane than its own"},
		"UPDATE outbox_settlement SET epoch = 0 WHERE message_id = 3":                         {"3 message settled at an attempt beyond its epoch"},
		"DELETE FROM outbox_order_lease WHERE message_id = 2":                                 {"2 message has a live lease without that of its order key"},
		"UPDATE outbox_order_lease SET order_key = 'x' WHERE message_id = 4":                  {"4 order lease is of another key than its message"},
		"UPDATE outbox_order_lease SET message_id = 9 WHERE message_id = 4":                   {"9 message blocks its order key and is not dead", "9 order lease is of another key than its message"},
		"UPDATE outbox_settlement SET outcome = 'cancelled', cause = '' WHERE message_id = 4": {"4 message blocks its order key and is not dead"},
		"UPDATE outbox_order_lease SET leased_until = 1700000000000000 WHERE message_id = 2":  {"2 order lease is not that of its message"},
		"UPDATE outbox_order_lease SET blocked = 0 WHERE message_id = 4":                      {"4 order lease is not that of its message"},
	} {
		exec(t, store, "DELETE FROM outbox_message; DELETE FROM outbox_queue; DELETE FROM outbox_settlement; DELETE FROM outbox_order_lease")
		exec(t, store, soundTables)
		exec(t, store, spoil)
		for _, examine := range []int32{1, 2, 1000} {
			if got := problems(examine); !slices.Equal(got, want) {
				t.Errorf("%s, %d at a time: found %q, want %q", spoil, examine, got, want)
			}
		}
	}
}

func TestSurroundings(t *testing.T) {
	t.Parallel()
	store := installed(t)
	exec(t, store, "DROP INDEX outbox_worker_name")
	rows, err := store.ReadSurroundings(t.Context(), db.ReadSurroundingsParams{})
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for _, row := range rows {
		facts[row.Section+" "+row.Name] = row.Value
	}
	for fact, want := range map[string]string{
		"setting journal_mode": "wal", "setting fsync": "on", "setting synchronous": "normal",
		"setting busy_timeout": "10000", "index worker_name": "missing", "index queue_due": "valid", "table queue": "",
	} {
		if got, ok := facts[fact]; !ok || got != want {
			t.Errorf("%s is %q, want %q", fact, got, want)
		}
	}
	for _, size := range []string{"page_size", "page_count", "log_bytes"} {
		if n, err := strconv.ParseInt(facts["setting "+size], 10, 64); err != nil || n <= 0 {
			t.Errorf("%s is %q", size, facts["setting "+size])
		}
	}
}
