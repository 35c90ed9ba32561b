package memdb_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

// one is the enqueue of one message of each key.
func one(keys ...string) db.EnqueueParams {
	n := len(keys)
	return db.EnqueueParams{
		Tenants: make([]string, n), Consumers: slices.Repeat([]string{"c"}, n), Targets: slices.Repeat([]string{"t"}, n),
		Kinds: slices.Repeat([]string{"k"}, n), Keys: keys, OrderKeys: make([]string, n), Priorities: make([]int16, n),
		Digests: slices.Repeat([][]byte{make([]byte, 32)}, n), Metadatas: make([]string, n), Payloads: slices.Repeat([][]byte{{}}, n),
		SourcePositions: make([]int64, n), SourceEventIds: make([]string, n), MaxAges: make([]int64, n),
		DueAts: make([]time.Time, n), Delays: make([]int64, n),
	}
}

func TestRollbackBurnsIdsAndFreesKeys(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	tx := store.Begin()
	first, err := store.Enqueue(t.Context(), tx, one("a"))
	if err != nil || len(store.Dump().Messages) != 0 {
		t.Fatalf("before the commit: %v, %d messages seen", err, len(store.Dump().Messages))
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	tx = store.Begin()
	second, err := store.Enqueue(t.Context(), tx, one("a"))
	if err != nil || !second[0].Stored || second[0].ID <= first[0].ID {
		t.Fatalf("after a rollback: %+v, %v; first %+v", second, err, first)
	}
	if err := tx.Commit(); err != nil || len(store.Dump().Messages) != 1 {
		t.Fatalf("commit: %v, %d messages", err, len(store.Dump().Messages))
	}
	if err := tx.Commit(); !errors.Is(err, memdb.ErrTxClosed) {
		t.Errorf("second commit: %v", err)
	}
}

func TestEnqueueWaitsForTheOtherTransaction(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := memdb.New(memdb.Config{})
			winner, waiter := store.Begin(), store.Begin()
			if _, err := store.Enqueue(t.Context(), winner, one("a")); err != nil {
				t.Fatal(err)
			}
			var rows []db.EnqueueRow
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				rows, err = store.Enqueue(t.Context(), waiter, one("a"))
			}()
			synctest.Wait()
			select {
			case <-done:
				t.Fatal("did not wait")
			default:
			}
			if commits {
				winner.Commit()
			} else {
				winner.Rollback()
			}
			<-done
			if err != nil || rows[0].Stored == commits {
				t.Errorf("the other one commits: %v; then stored %+v, %v", commits, rows, err)
			}
		})
	}
}

func TestEnqueueBreaksDeadlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memdb.New(memdb.Config{})
		a, b := store.Begin(), store.Begin()
		store.Enqueue(t.Context(), a, one("a"))
		store.Enqueue(t.Context(), b, one("b"))
		done := make(chan error)
		go func() {
			_, err := store.Enqueue(t.Context(), a, one("b"))
			done <- err
		}()
		synctest.Wait()
		if _, err := store.Enqueue(t.Context(), b, one("a")); !errors.Is(err, db.ErrRetry) {
			t.Errorf("the second to wait got %v", err)
		}
		if _, err := store.Enqueue(t.Context(), b, one("c")); !errors.Is(err, memdb.ErrTxAborted) {
			t.Errorf("and then %v", err)
		}
		b.Rollback()
		if err := <-done; err != nil {
			t.Errorf("the first got %v", err)
		}
	})
}

func TestEnqueueStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memdb.New(memdb.Config{})
		a, b := store.Begin(), store.Begin()
		store.Enqueue(t.Context(), a, one("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := store.Enqueue(ctx, b, one("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := b.Commit(); !errors.Is(err, memdb.ErrTxAborted) {
			t.Errorf("commit after an error: %v", err)
		}
	})
}

type told []int64

func (c *told) Committed(ids ...int64) { *c = append(*c, ids...) }

func TestInTx(t *testing.T) {
	t.Parallel()
	store := memdb.New(memdb.Config{})
	var committer told
	enqueue := func(result error) error {
		return memdb.InTx(t.Context(), store, &committer, func(tx *memdb.Tx) error {
			_, err := store.Enqueue(t.Context(), tx, one("b", "a"))
			return errors.Join(err, result)
		})
	}
	failed := errors.New("of the caller")
	if err := enqueue(failed); !errors.Is(err, failed) || len(committer) != 0 {
		t.Errorf("a failed transaction: %v, told %v", err, committer)
	}
	if err := enqueue(nil); err != nil || !slices.Equal(committer, []int64{3, 4}) {
		t.Errorf("a committed transaction: %v, told %v", err, committer)
	}
	if err := enqueue(nil); err != nil || len(committer) != 2 {
		t.Errorf("duplicates: %v, told %v", err, committer)
	}
}
