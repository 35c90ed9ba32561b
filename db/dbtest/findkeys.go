package dbtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var findKeysTests = []test{
	{"says where each message stands", findsStates},
	{"answers by position, leaving out what is absent", findsByPosition},
	{"sees its own transaction and no other's", findsOwn},
	{"is exact in tenant, consumer and key", findsExactly},
}

// find asks for keys of consumer "c" without a tenant, and returns the answers in input order.
func (f *fixture) find(keys ...string) []db.FindKeysRow {
	f.Helper()
	tx, commit, _ := f.begin()
	rows := f.findIn(tx, keys...)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	return rows
}

func (f *fixture) findIn(tx db.Tx, keys ...string) []db.FindKeysRow {
	f.Helper()
	n := len(keys)
	rows, err := f.Store.FindKeys(f.Context(), tx, db.FindKeysParams{Tenants: make([]string, n), Consumers: slices.Repeat([]string{"c"}, n), Keys: keys})
	if err != nil {
		f.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b db.FindKeysRow) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return rows
}

func findsStates(f *fixture) {
	f.enqueue(effect{key: "pending", kind: "waits"})
	expired := f.enqueue(effect{key: "expired", kind: "waits", maxAge: time.Second})
	f.Age(f, time.Minute)
	sameIDs(f, "expired", f.expire(0, 100, 0), expired...)
	f.park(effect{key: "parked"})
	f.bury(effect{key: "dead"})
	f.deliver(effect{key: "delivered"})
	f.cancel(f.enqueue(effect{key: "cancelled"})...)
	f.hold(effect{key: "leased"})
	states := []string{"pending", "expired", "parked", "dead", "delivered", "cancelled", "leased"}
	for i, row := range f.find(states...) {
		same(f, "state", row.State, states[i])
	}
}

func findsByPosition(f *fixture) {
	digest := slices.Repeat([]byte{0xff, 0x00}, 16)
	ids := f.enqueue(effect{key: "a"}, effect{key: "b", digest: digest})
	rows := f.find("absent", "b", "missing", "a", "b")
	if len(rows) != 3 {
		f.Fatalf("found %+v", rows)
	}
	for i, want := range []db.FindKeysRow{{Ordinal: 2, ID: ids[1]}, {Ordinal: 4, ID: ids[0]}, {Ordinal: 5, ID: ids[1]}} {
		same(f, "answer", db.FindKeysRow{Ordinal: rows[i].Ordinal, ID: rows[i].ID}, want)
	}
	sameBytes(f, "digest", rows[0].Digest, digest)
}

func findsOwn(f *fixture) {
	tx, commit, _ := f.begin()
	stored, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{key: "a"}))
	if err != nil {
		f.Fatal(err)
	}
	same(f, "seen by others", len(f.find("a")), 0)
	rows := f.findIn(tx, "a")
	if len(rows) != 1 || rows[0].ID != stored[0].ID || rows[0].State != "pending" {
		f.Errorf("seen by itself: %+v, stored %+v", rows, stored)
	}
	if err := commit(); err != nil {
		f.Fatal(err)
	}
}

func findsExactly(f *fixture) {
	f.enqueue(effect{key: "a", tenant: "acme"}, effect{key: "a", consumer: "other"}, effect{key: "aa"})
	same(f, "found", len(f.find("a", "A", "a%", "_")), 0)
}
