package memdb_test

import (
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(*testing.T) dbtest.Harness {
		store := memdb.New(memdb.Config{})
		return dbtest.Harness{
			Store:  store,
			Second: store,
			Begin: func(testing.TB) (db.Tx, func() error, func() error) {
				tx := store.Begin()
				return tx, tx.Commit, tx.Rollback
			},
			Age:   func(_ testing.TB, d time.Duration) { store.Age(d) },
			Dump:  func(testing.TB) dbtest.Dump { return store.Dump() },
			Reset: func(testing.TB) { store.Reset() },
		}
	})
}
