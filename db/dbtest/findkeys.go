package dbtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var findKeysTests = []test{
	{name: "says where each message stands", run: findsStates},
	{name: "answers by position, leaving out what is absent", run: findsByPosition},
	{name: "sees its own transaction and no other's", run: findsOwn, sideBySide: true},
	{name: "is exact in tenant, consumer and key", run: findsExactly},
}

// asking asks for keys of consumer "c" without a tenant, each with the digest of an effect that is given none.
func asking(keys ...string) db.FindKeysParams {
	p := db.FindKeysParams{Tenants: make([]string, len(keys)), Consumers: slices.Repeat([]string{"c"}, len(keys)), Keys: keys}
	for _, key := range keys {
		p.Digests = append(p.Digests, digestOf(key))
	}
	return p
}

// find returns the answers in input order.
func (f *fixture) find(p db.FindKeysParams) []db.FindKeysRow {
	f.Helper()
	tx, commit, _ := f.begin()
	rows := f.findIn(tx, p)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	return rows
}

func (f *fixture) findIn(tx db.Tx, p db.FindKeysParams) []db.FindKeysRow {
	f.Helper()
	rows, err := f.Store.FindKeys(f.Context(), tx, p)
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
	for i, row := range f.find(asking(states...)) {
		same(f, "state", row.State, states[i])
	}
}

func findsByPosition(f *fixture) {
	ids := f.enqueue(effect{key: "a"}, effect{key: "b"})
	asked := asking("absent", "b", "missing", "a", "b")
	asked.Digests[1][31]++
	rows := f.find(asked)
	if len(rows) != 3 {
		f.Fatalf("found %+v", rows)
	}
	for i, want := range []db.FindKeysRow{{Ordinal: 2, ID: ids[1]}, {Ordinal: 4, ID: ids[0], SameDigest: true}, {Ordinal: 5, ID: ids[1], SameDigest: true}} {
		want.State = "pending"
		same(f, "answer", rows[i], want)
	}
}

func findsOwn(f *fixture) {
	tx, commit, _ := f.begin()
	stored, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{key: "a"}))
	if err != nil {
		f.Fatal(err)
	}
	same(f, "seen by others", len(f.find(asking("a"))), 0)
	rows := f.findIn(tx, asking("a"))
	if len(rows) != 1 || rows[0].ID != stored[0].ID || rows[0].State != "pending" {
		f.Errorf("seen by itself: %+v, stored %+v", rows, stored)
	}
	if err := commit(); err != nil {
		f.Fatal(err)
	}
}

func findsExactly(f *fixture) {
	f.enqueue(effect{key: "a", tenant: "acme"}, effect{key: "a", consumer: "other"}, effect{key: "aa"})
	same(f, "found", len(f.find(asking("a", "A", "a%", "_"))), 0)
}
