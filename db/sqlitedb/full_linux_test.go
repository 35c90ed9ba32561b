package sqlitedb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// A disk that is really full, where the machine lets the test mount one; TestFullDisk bounds the file on all others. What hits it fails and leaves
// nothing; with room again everything that was stored is performed.
func TestFullDiskOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Logf("no disk of its own: %v", err)
		return
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	store, err := sqlitedb.Open(filepath.Join(dir, "shop.db"), sqlitedb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := box.Consumer("c", "t", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for err = nil; err == nil; {
		err = sqlitedb.InTx(t.Context(), store, box, func(tx *sqlitedb.BoxTx) error {
			_, err := box.Enqueue(t.Context(), tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: fmt.Sprint(stored), Payload: make([]byte, 20_000)})
			return err
		})
		if err == nil {
			stored++
		}
	}
	var failure *sqlite.Error
	if !errors.As(err, &failure) || failure.Code()&0xff != sqlite3.SQLITE_FULL && failure.Code()&0xff != sqlite3.SQLITE_IOERR || stored == 0 {
		t.Fatalf("%d messages stored, then: %v", stored, err)
	}
	lease := func() []outbox.Message {
		messages, err := box.Lease(t.Context(), consumer, outbox.LeaseRequest{Kinds: []string{"k"}, Limit: 1000, For: time.Minute})
		if err != nil {
			t.Logf("a lease without room: %v", err)
		}
		return messages
	}
	held := lease()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	dump := dbtest.SQL{DB: store.DB(), SQLite: true}.Dump(t)
	dbtest.Audit(t, dump)
	if len(dump.Messages) != stored {
		t.Errorf("%d messages are there, %d were stored", len(dump.Messages), stored)
	}
	delivered := 0
	for _, m := range append(held, lease()...) {
		if result, err := box.Settle(t.Context(), consumer, outbox.Scope{}, m, outbox.Delivered()); err != nil || result.Status != outbox.Acknowledged {
			t.Errorf("message %d: %+v, %v", m.ID, result, err)
		}
		delivered++
	}
	if delivered != stored {
		t.Errorf("%d of %d messages were delivered", delivered, stored)
	}
}
