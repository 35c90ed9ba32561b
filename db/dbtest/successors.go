package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var successorTests = []test{
	{name: "grants the next of each key, whole", run: followsWhole},
	{name: "grants nothing of a key whose head may not run", run: followsGuards},
	{name: "takes no more than its limit", run: followsMaxRows},
	{name: "stays in its scope, consumer and target", run: followsScope},
	{name: "passes by paused lanes", run: followsUnpaused},
	{name: "waits for a late commit that runs", run: followsLateCommit},
	{name: "a lost head is granted unsure", run: followsLost},
}

// following is a lease of the successors of keys without a tenant, for kind "k".
func (f *fixture) following(keys ...string) db.LeaseSuccessorsParams {
	return db.LeaseSuccessorsParams{
		Tenants: make([]string, len(keys)), OrderKeys: keys, Kinds: []string{"k"}, AttemptLimits: []int32{attemptLimit}, MaxAges: []int64{0},
		Lease: leaseTime.Microseconds(), Consumer: "c", Target: "t", LongestLease: db.LongestLease.Microseconds(), AllTenants: true, MaxRows: 100,
		Token: f.token(),
	}
}

func (f *fixture) follow(p db.LeaseSuccessorsParams) hold {
	f.Helper()
	var h hold
	for _, row := range run(f, f.Store.LeaseSuccessors, p) {
		h.ids, h.tokens = append(h.ids, row.ID), append(h.tokens, p.Token)
	}
	return h
}

func followsWhole(f *fixture) {
	ids := f.enqueue(ordered("a", 2)...)
	f.enqueue(effect{order: "b", key: "x", priority: 4, payload: []byte("body"), metadata: "{}", position: 3, event: "e"})
	p := f.following("a", "absent", "b", "")
	p.Worker = 7
	rows := run(f, f.Store.LeaseSuccessors, p)
	if len(rows) != 2 {
		f.Fatalf("got %+v", rows)
	}
	row := rows[0]
	if row.OrderKey != "b" {
		row = rows[1]
	}
	q, m := f.queued(row.ID), f.dump().Messages[2]
	same(f, "leased by", []any{q.LeasedBy, q.Token}, []any{int64(7), p.Token})
	for what, instants := range map[string][2]time.Time{
		"due": {row.DueAt, q.DueAt}, "leased until": {row.LeasedUntil, q.LeasedUntil}, "created": {row.CreatedAt, m.CreatedAt},
	} {
		sameInstant(f, what, instants[0], instants[1])
	}
	row.DueAt, row.LeasedUntil, row.CreatedAt = time.Time{}, time.Time{}, time.Time{}
	same(f, "granted", row, db.LeaseSuccessorsRow{
		ID: m.ID, Kind: "k", Key: "x", OrderKey: "b", Priority: 4, SourcePosition: 3, SourceEventID: "e", Metadata: "{}", Payload: []byte("body"),
		Attempt: 1, Epoch: 1,
	})
	f.fates("pending", ids[1])
}

func followsGuards(f *fixture) {
	f.enqueue(effect{order: "deferred", delay: time.Hour}, effect{order: "other kind", kind: "other"})
	spent := f.enqueue(ordered("spent", 1)...)
	parked := f.enqueue(ordered("parked", 1)...)
	blocked := f.enqueue(ordered("blocked", 2)...)
	h := f.take(f.leasing())
	sameIDs(f, "leased", h.ids, spent[0], parked[0], blocked[0])
	run(f, f.Store.SettleRetry, h.only(0).retried(0))
	run(f, f.Store.SettleParked, h.only(1).parked())
	dead := h.only(2).dead("permanent")
	dead.BlockOnDead = true
	run(f, f.Store.SettleDead, dead)
	f.enqueue(effect{order: "leased"})
	f.take(f.leasing())
	f.enqueue(effect{order: "aged", maxAge: time.Microsecond})
	f.Age(f, time.Second)
	for _, key := range []string{"deferred", "other kind", "aged", "spent", "parked", "blocked", "leased"} {
		f.unchanged("a lease of "+key, func() {
			p := f.following(key)
			p.AttemptLimits[0] = 1
			sameIDs(f, "granted of "+key, f.follow(p).ids)
		})
	}
}

func followsMaxRows(f *fixture) {
	f.enqueue(effect{order: "a"}, effect{order: "b"}, effect{order: "d"})
	p := f.following("a", "b", "d")
	p.MaxRows = 2
	same(f, "granted", len(f.follow(p).ids), 2)
}

func followsScope(f *fixture) {
	ids := f.enqueue(effect{order: "o", tenant: "a"}, effect{order: "o", tenant: "b"})
	f.enqueue(effect{order: "o", consumer: "other"}, effect{order: "o", target: "other"})
	p := f.following("o", "o", "o")
	p.Tenants = []string{"a", "b", ""}
	p.AllTenants, p.Scope = false, []string{"b"}
	sameIDs(f, "granted", f.follow(p).ids, ids[1])
}

func followsUnpaused(f *fixture) {
	ids := f.enqueue(ordered("o", 1)...)
	f.pause("*", "*", "k", "*", 0)
	sameIDs(f, "granted", f.follow(f.following("o")).ids)
	f.resume("*", "*", "k", "*")
	sameIDs(f, "granted after it was lifted", f.follow(f.following("o")).ids, ids...)
}

func followsLateCommit(f *fixture) {
	_, second, commit := f.late("o")
	sameIDs(f, "granted", f.follow(f.following("o")).ids, second)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	sameIDs(f, "granted beside it", f.follow(f.following("o")).ids)
}

func followsLost(f *fixture) {
	f.enqueue(ordered("o", 1)...)
	f.take(f.leasing())
	f.Age(f, leaseTime)
	row := one(f, f.Store.LeaseSuccessors, f.following("o"))
	same(f, "granted", []any{row.Attempt, row.Epoch, row.Unsure}, []any{int32(2), int64(2), true})
}
