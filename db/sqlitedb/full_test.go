package sqlitedb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
)

// isFull says that SQLite had no room.
func isFull(err error) bool {
	var failure *sqlite.Error
	return errors.As(err, &failure) && failure.Code()&0xff == sqlite3.SQLITE_FULL
}

// A full disk refuses what needs room and loses nothing: the transaction that hit it leaves nothing, what was leased can be settled once there is
// room, and everything stored before is performed. SQLite bounds the file itself here, which fails its writes as a full disk does.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "shop.db"))
	beside := dbtest.SQL{DB: store.DB(), SQLite: true}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := box.Consumer("c", "t", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	pages := func(more int) {
		var limit int
		if err := store.DB().QueryRow("PRAGMA page_count").Scan(&limit); err != nil {
			t.Fatal(err)
		}
		if err := store.DB().QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", limit+more)).Scan(&limit); err != nil {
			t.Fatal(err)
		}
	}
	pages(50)
	stored := 0
	for err = nil; err == nil; {
		err = sqlitedb.InTx(t.Context(), store, box, func(tx *sqlitedb.BoxTx) error {
			effects := make([]outbox.Effect, 3)
			for i := range effects {
				effects[i] = outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: fmt.Sprintf("%d/%d", stored, i), Payload: make([]byte, 3_000)}
			}
			_, err := box.EnqueueMany(t.Context(), tx, effects)
			return err
		})
		if err == nil {
			stored += 3
		}
	}
	if !isFull(err) || stored == 0 {
		t.Fatalf("%d messages stored, then: %v", stored, err)
	}
	dump := beside.Dump(t)
	dbtest.Audit(t, dump)
	if len(dump.Messages) != stored || len(dump.Queue) != stored {
		t.Errorf("%d messages, %d queued; %d were stored", len(dump.Messages), len(dump.Queue), stored)
	}

	messages, err := box.Lease(t.Context(), consumer, outbox.LeaseRequest{Kinds: []string{"k"}, Limit: stored, For: time.Minute})
	if err != nil || len(messages) != stored {
		t.Fatalf("leased %d, %v", len(messages), err)
	}
	pages(0)
	result := fmt.Sprintf("%04000d", 7)
	for _, m := range messages {
		if _, err = box.Settle(t.Context(), consumer, outbox.Scope{}, m, outbox.DeliveredWith(result)); err != nil {
			break
		}
	}
	if !isFull(err) {
		t.Errorf("settling without room: %v", err)
	}
	dbtest.Audit(t, beside.Dump(t))
	pages(10_000)
	for _, m := range messages {
		settled, err := box.Settle(t.Context(), consumer, outbox.Scope{}, m, outbox.DeliveredWith(result))
		if err != nil || settled.Status != outbox.Acknowledged && !settled.Recorded {
			t.Errorf("message %d: %+v, %v", m.ID, settled, err)
		}
	}
	if dump := beside.Dump(t); len(dump.Settlements) != stored || len(dump.Queue) != 0 {
		t.Errorf("%d settled, %d open", len(dump.Settlements), len(dump.Queue))
	}
}
