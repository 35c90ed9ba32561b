package sqlitedb

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A replay of a smaller id may run beside a parked message of its key: dead by an operator's word, that one must not take the key from it.
func TestResolveBlocksNoKeyThatAnotherHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until   string // of the order lease of message 1
		blocked int
		want    string // who has the key then, and whether it is blocked
	}{
		"live":                   {"unixepoch() * 1000000 + 60000000", 0, "1 0"},
		"over":                   {"unixepoch() * 1000000 - 60000000", 0, "2 1"},
		"beyond the longest one": {"unixepoch() * 1000000 + 7200000000", 0, "2 1"},
		"blocked":                {"-62135596800000000", 1, "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := installed(t)
			exec(t, store, fmt.Sprintf(`
				INSERT INTO outbox_queue (message_id, due_at, born_at, consumer, target, kind, order_key, state, unsure, epoch, attempt)
				VALUES (2, 1700000000000000, 1700000000000000, 'c', 't', 'k', 'a', 1, 1, 1, 1), (3, 1700000000000000, 1700000000000000, 'c', 't', 'k', 'a', 1, 1, 1, 1);
				INSERT INTO outbox_order_lease (consumer, target, tenant, order_key, message_id, leased_until, blocked)
				VALUES ('c', 't', '', 'a', 1, %s, %d)`, c.until, c.blocked))
			_, err := store.ResolveSettled(t.Context(), db.ResolveSettledParams{
				Outcome: "dead", Ids: []int64{2, 3}, AllTenants: true, BlockOnDead: true, LongestLease: time.Hour.Microseconds(), Actor: "ann", Reason: "lost",
			})
			if err != nil {
				t.Fatal(err)
			}
			var got string
			err = store.DB().QueryRowContext(t.Context(), "SELECT message_id || ' ' || blocked FROM outbox_order_lease").Scan(&got)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
