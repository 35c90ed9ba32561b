package memdb_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

const lease = 30 * time.Second

// storeOne is a store with one message, which expires after an hour.
func storeOne(t *testing.T, delay time.Duration) *memdb.Store {
	t.Helper()
	store := memdb.New(memdb.Config{})
	err := memdb.InTx(t.Context(), store, &told{}, func(tx *memdb.Tx) error {
		p := one("a")
		p.Delays[0], p.MaxAges[0] = delay.Microseconds(), time.Hour.Microseconds()
		_, err := store.Enqueue(t.Context(), tx, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// leased leases the message and returns its fate, FateClosing when there is none to tell.
func leased(t *testing.T, store *memdb.Store) int32 {
	t.Helper()
	rows, err := store.LeaseDue(t.Context(), db.LeaseDueParams{
		Kinds: []string{"k"}, Tenants: []string{""}, Priorities: []int16{0}, AfterDues: make([]time.Time, 1), AfterIds: []int64{0},
		AttemptLimits: []int32{12}, MaxAges: []int64{0}, AllTenants: true, Consumer: "c", Target: "t", Lease: lease.Microseconds(),
		Examine: 1000, LongestLease: db.LongestLease.Microseconds(), Quota: 1, MaxRows: 1, Token: []byte("0123456789abcdef"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows[0].Fate
}

func delivered(t *testing.T, store *memdb.Store) int {
	t.Helper()
	ids, err := store.SettleDelivered(t.Context(), db.SettleDeliveredParams{
		Ids: []int64{1}, Tokens: []byte("0123456789abcdef"), Results: []string{""}, Consumer: "c", Target: "t", AllTenants: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

// Only a clock that stands still shows what happens at exactly a boundary: due when due_at <= now, over when leased_until <= now, too old
// when the expiry <= now, purged when settled strictly before the cut-off.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at     time.Duration // the boundary
		begin  func(*testing.T) *memdb.Store
		passed func(*testing.T, *memdb.Store) bool
	}{
		"due": {
			at:     time.Minute,
			begin:  func(t *testing.T) *memdb.Store { return storeOne(t, time.Minute) },
			passed: func(t *testing.T, store *memdb.Store) bool { return leased(t, store) == db.FateGranted },
		},
		"lease over for the next": {
			at:     lease,
			begin:  storeLeased,
			passed: func(t *testing.T, store *memdb.Store) bool { return leased(t, store) == db.FateGranted },
		},
		"lease over for its holder": {
			at:     lease,
			begin:  storeLeased,
			passed: func(t *testing.T, store *memdb.Store) bool { return delivered(t, store) == 0 },
		},
		"too old": {
			at:     time.Hour,
			begin:  func(t *testing.T) *memdb.Store { return storeOne(t, 0) },
			passed: func(t *testing.T, store *memdb.Store) bool { return leased(t, store) == db.FateBuried },
		},
		"expired after its grace": {
			at:    2 * time.Hour,
			begin: func(t *testing.T) *memdb.Store { return storeOne(t, 0) },
			passed: func(t *testing.T, store *memdb.Store) bool {
				rows, err := store.ExpireUnleased(t.Context(), db.ExpireUnleasedParams{AllTenants: true, Examine: 1, Grace: time.Hour.Microseconds()})
				return err == nil && rows[0].Expired
			},
		},
		"purged": {
			at: time.Hour + time.Microsecond,
			begin: func(t *testing.T) *memdb.Store {
				store := storeLeased(t)
				delivered(t, store)
				return store
			},
			passed: func(t *testing.T, store *memdb.Store) bool {
				rows, err := store.PurgeDelivered(t.Context(), db.PurgeDeliveredParams{AllTenants: true, MaxRows: 1, Keep: time.Hour.Microseconds()})
				return err == nil && rows[0].Removed
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, step := range []time.Duration{-time.Microsecond, 0} {
				synctest.Test(t, func(t *testing.T) {
					store := c.begin(t)
					time.Sleep(c.at + step)
					if passed := c.passed(t, store); passed != (step == 0) {
						t.Errorf("passed %v, %v off the boundary", passed, step)
					}
				})
			}
		})
	}
}

func storeLeased(t *testing.T) *memdb.Store {
	t.Helper()
	store := storeOne(t, 0)
	if fate := leased(t, store); fate != db.FateGranted {
		t.Fatalf("fate %d", fate)
	}
	return store
}
