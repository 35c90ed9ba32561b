package sqlitedb_test

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
)

// Where SQLite ended the caller's transaction by itself, an effect enqueued afterwards is refused: it would be committed at once and alone.
func TestEnqueueAfterTheTransactionIsOver(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "shop.db"))
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	effect := outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: "1"}
	err = sqlitedb.InTx(t.Context(), store, box, func(tx *sqlitedb.BoxTx) error {
		if _, err := tx.Exec("INSERT OR ROLLBACK INTO outbox_queue (message_id) VALUES (NULL)"); err == nil {
			t.Error("the caller's own statement did not fail")
		}
		if _, err := box.Enqueue(t.Context(), tx, effect); err == nil {
			t.Error("enqueued in a transaction that is over")
		}
		return nil
	})
	if err == nil {
		t.Error("a transaction that is over was committed")
	}
	var stored int
	if err := store.DB().QueryRow("SELECT count(*) FROM outbox_message").Scan(&stored); err != nil || stored != 0 {
		t.Errorf("%d stored, %v", stored, err)
	}
	// The connection is as good as new.
	err = sqlitedb.InTx(t.Context(), store, box, func(tx *sqlitedb.BoxTx) error {
		_, err := box.Enqueue(t.Context(), tx, effect)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// interrupt is what fencepost_test_interrupt() calls inside a statement.
var interrupt atomic.Pointer[context.CancelFunc]

func init() {
	sqlite.MustRegisterScalarFunction("fencepost_test_interrupt", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		if cancel := interrupt.Load(); cancel != nil {
			(*cancel)()
		}
		return int64(0), nil
	})
}

// A context that ends in the middle of an enqueue takes back the enqueue and nothing else: SQLite would roll back the whole transaction, and
// commit what the caller did next by itself, had a statement that writes been interrupted.
func TestContextEndsInsideEnqueue(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "shop.db"))
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.DB().Exec(`CREATE TABLE shop (name TEXT);
		CREATE TRIGGER slow AFTER INSERT ON outbox_message BEGIN
			SELECT fencepost_test_interrupt();
			SELECT (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n);
		END`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	interrupt.Store(&cancel)
	defer interrupt.Store(nil)
	err = sqlitedb.InTx(t.Context(), store, box, func(tx *sqlitedb.BoxTx) error {
		if _, err := tx.Exec("INSERT INTO shop VALUES ('before')"); err != nil {
			return err
		}
		effects := []outbox.Effect{{Consumer: "c", Target: "t", Kind: "k", Key: "1"}, {Consumer: "c", Target: "t", Kind: "k", Key: "2"}}
		if _, err := box.EnqueueMany(ctx, tx, effects); err == nil {
			t.Error("enqueued after its context ended")
		}
		_, err := tx.Exec("INSERT INTO shop VALUES ('after')")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var rows, stored int
	err = store.DB().QueryRow("SELECT (SELECT count(*) FROM shop), (SELECT count(*) FROM outbox_message)").Scan(&rows, &stored)
	if err != nil || rows != 2 || stored != 0 {
		t.Errorf("%d changes of the caller, %d stored, %v", rows, stored, err)
	}
}
