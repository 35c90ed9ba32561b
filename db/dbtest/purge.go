package dbtest

import (
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var purgeTests = []test{
	{name: "removes what was delivered before the cut-off, whole", run: purgesDelivered},
	{name: "keeps its place and its limit", run: purgesInPages},
	{name: "nothing else", run: purgesDeliveredOnly},
	{name: "removes the dead, the cancelled and the expired, each by itself", run: purgesUndelivered},
	{name: "the oldest first", run: purgesOldest},
	{name: "frees the key that a purged message blocked", run: purgeUnblocks},
	{name: "frees the identity", run: purgeFreesIdentity},
	{name: "the scope's tenants only, going on after what it passed by", run: purgesInScope},
	{name: "forgets the acts of operators", run: purgesAudit},
	{name: "counts beforehand what it would remove", run: countsOld},
}

// purge removes delivered messages and returns the removed ids and the last one looked at.
func (f *fixture) purge(after int64, maxRows int32, keep time.Duration) (removed []int64, last int64) {
	f.Helper()
	for _, row := range run(f, f.Store.PurgeDelivered, db.PurgeDeliveredParams{
		SchemaName: f.Store.Schema(), AllTenants: true, AfterID: after, MaxRows: maxRows, Keep: keep.Microseconds(),
	}) {
		if row.Removed {
			removed = append(removed, row.ID)
		} else {
			last = row.ID
		}
	}
	return removed, last
}

func (f *fixture) purgeUndelivered(outcome string, maxRows int32, keep time.Duration) []int64 {
	f.Helper()
	return f.purgeUndeliveredOn(f.Store, outcome, maxRows, keep)
}

func (f *fixture) purgeUndeliveredOn(store db.Store, outcome string, maxRows int32, keep time.Duration) (removed []int64) {
	f.Helper()
	for _, row := range runOn(f, store.PurgeUndelivered, db.PurgeUndeliveredParams{
		SchemaName: store.Schema(), AllTenants: true, Outcome: outcome, Keep: keep.Microseconds(), MaxRows: maxRows,
	}) {
		if row.Removed {
			removed = append(removed, row.ID)
		}
	}
	return removed
}

func purgesDelivered(f *fixture) {
	old := f.deliver(some(2)...)
	f.Age(f, time.Hour)
	fresh := f.deliver(some(1)...)
	removed, last := f.purge(0, 100, 30*time.Minute)
	sameIDs(f, "removed", removed, old...)
	same(f, "last", last, fresh[0])
	d := f.dump()
	same(f, "rows left", []int{len(d.Messages), len(d.Settlements)}, []int{1, 1})
	f.fates("", old...)
}

// Shows: S3.21
func purgesInPages(f *fixture) {
	ids := f.deliver(some(5)...)
	f.Age(f, time.Hour)
	var after int64
	for _, want := range [][]int64{ids[0:2], ids[2:4], ids[4:5]} {
		removed, last := f.purge(after, 2, time.Minute)
		sameIDs(f, "removed", removed, want...)
		same(f, "last", last, want[len(want)-1])
		after = last
	}
	removed, last := f.purge(after, 2, time.Minute)
	sameIDs(f, "removed at the end", removed)
	same(f, "last at the end", last, 0)
}

func purgesDeliveredOnly(f *fixture) {
	f.bury(effect{})
	f.cancel(f.enqueue(effect{})...)
	f.park(effect{})
	f.hold(effect{})
	f.enqueue(effect{})
	f.Age(f, time.Hour)
	young := f.deliver(effect{priority: 1})
	f.unchanged("a purge", func() {
		removed, last := f.purge(0, 100, 30*time.Minute)
		sameIDs(f, "removed", removed)
		same(f, "last", last, young[0])
		sameIDs(f, "removed of delivered", f.purgeUndelivered("delivered", 100, 0))
	})
}

func purgesUndelivered(f *fixture) {
	dead, cancelled := f.bury(some(2)...), f.enqueue(some(1)...)
	f.cancel(cancelled...)
	expired := f.enqueue(effect{maxAge: time.Second})
	f.Age(f, time.Minute)
	f.expire(0, 100, 0)
	f.Age(f, time.Hour)
	young := f.bury(some(1)...)
	for outcome, want := range map[string][]int64{"dead": dead, "cancelled": cancelled, "expired": expired} {
		sameIDs(f, "removed later", f.purgeUndelivered(outcome, 100, 2*time.Hour))
		sameIDs(f, "removed", f.purgeUndelivered(outcome, 100, time.Hour), want...)
		f.fates("", want...)
	}
	f.fates("dead", young...)
}

func purgesOldest(f *fixture) {
	ids := f.enqueue(some(3)...)
	for _, i := range []int{2, 0, 1} {
		f.cancel(ids[i])
		f.Age(f, time.Hour)
	}
	sameIDs(f, "removed first", f.purgeUndelivered("cancelled", 1, time.Minute), ids[2])
	sameIDs(f, "removed then", f.purgeUndelivered("cancelled", 1, time.Minute), ids[0])
}

func purgeUnblocks(f *fixture) {
	dead := []int64{f.blocked("a"), f.blocked("b")}
	next := f.enqueue(effect{tenant: "a", order: "o"}, effect{tenant: "b", order: "o"})
	f.Age(f, time.Hour)
	run(f, f.Store.ReplayDead, replaying(dead[1]))
	sameIDs(f, "removed", f.purgeUndelivered("dead", 100, time.Minute), dead[0])
	rows, _ := f.leaseDue(f.leasing(lane{tenant: "a"}, lane{tenant: "b"}))
	sameIDs(f, "granted", granted(rows), next[0], dead[1])
}

func purgeFreesIdentity(f *fixture) {
	ids := slices.Concat(f.deliver(effect{key: "a"}), f.bury(effect{key: "b"}))
	f.Age(f, time.Hour)
	f.purge(0, 100, time.Minute)
	f.purgeUndelivered("dead", 100, time.Minute)
	for i, id := range f.enqueue(effect{key: "a"}, effect{key: "b"}) {
		if id <= ids[i] {
			f.Errorf("id %d is used again", id)
		}
	}
}

// Of what is old two are another tenant's: a walk in steps of one looks at them, leaves them and goes on.
func purgesInScope(f *fixture) {
	ids := f.enqueue(effect{tenant: "b"}, effect{tenant: "a"}, effect{tenant: "b"}, effect{tenant: "a"})
	f.cancel(ids...)
	delivered := slices.Concat(f.deliver(effect{tenant: "b"}), f.deliver(effect{tenant: "a"}))
	f.Age(f, time.Hour)
	undelivered := db.PurgeUndeliveredParams{
		SchemaName: f.Store.Schema(), Scope: []string{"a", "c"}, Outcome: "cancelled", Keep: time.Minute.Microseconds(), MaxRows: 1,
	}
	var removed []int64
	for steps := 0; steps < 10; steps++ {
		rows := run(f, f.Store.PurgeUndelivered, undelivered)
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			if row.Removed {
				removed = append(removed, row.ID)
			} else {
				undelivered.AfterAt, undelivered.AfterID = row.SettledAt, row.ID
			}
		}
	}
	for _, row := range run(f, f.Store.PurgeDelivered, db.PurgeDeliveredParams{
		SchemaName: f.Store.Schema(), Scope: []string{"a"}, MaxRows: 100, Keep: time.Minute.Microseconds(),
	}) {
		if row.Removed {
			removed = append(removed, row.ID)
		}
	}
	sameIDs(f, "removed", removed, ids[1], ids[3], delivered[1])
}

func purgesAudit(f *fixture) {
	f.cancel(f.enqueue(effect{tenant: "a"}, effect{tenant: "b"})...)
	f.Age(f, time.Hour)
	f.cancel(f.enqueue(effect{tenant: "a"})...)
	audits := f.dump().Audits
	arg := db.PurgeAuditParams{SchemaName: f.Store.Schema(), Scope: []string{"a"}, MaxRows: 2, Keep: time.Minute.Microseconds()}
	rows := run(f, f.Store.PurgeAudit, arg)
	same(f, "first step", rows, []db.PurgeAuditRow{{ID: audits[0].ID, Removed: true}, {ID: audits[1].ID}})
	arg.AfterID = audits[1].ID
	same(f, "second step", run(f, f.Store.PurgeAudit, arg), []db.PurgeAuditRow{{ID: audits[2].ID}})
	arg.AfterID = audits[2].ID
	same(f, "at the end", len(run(f, f.Store.PurgeAudit, arg)), 0)
	same(f, "left", len(f.dump().Audits), 2)
}

func countsOld(f *fixture) {
	old := slices.Concat(f.deliver(some(3)...), f.bury(some(2)...), f.deliver(effect{tenant: "a"}))
	f.cancel(f.enqueue(effect{})...)
	f.Age(f, time.Hour)
	last := f.deliver(some(1)...)[0]
	count := func(arg db.CountOldParams) map[string]int64 {
		got := map[string]int64{}
		for _, row := range run(f, f.Store.CountOld, arg) {
			got[row.Outcome] = row.Old + row.Last
		}
		return got
	}
	minute := time.Minute.Microseconds()
	all := db.CountOldParams{AllTenants: true, MaxRows: 100, KeepDelivered: minute, KeepDead: minute}
	same(f, "of all", count(all), map[string]int64{"delivered": 4, "dead": 2, "": last})
	one := all
	one.AllTenants, one.Scope, one.MaxRows, one.KeepDead = false, []string{""}, 6, 0
	same(f, "of the first six, in scope, the dead kept for ever", count(one), map[string]int64{"delivered": 3, "": old[5]})
	one.AfterID = last
	same(f, "at the end", count(one), map[string]int64{})
}

var expireTests = []test{
	{name: "settles what nobody leased within its age and the grace", run: expiresUnleased},
	{name: "nothing that was ever leased, or parked", run: expiresNeverLeased},
	{name: "keeps its place and its limit", run: expiresInPages},
	{name: "the scope's tenants only, and counts them beforehand", run: expiresInScope},
}

// expire settles what was never leased and returns the ids.
func (f *fixture) expire(after int64, examine int32, grace time.Duration) []int64 {
	f.Helper()
	ids, _ := f.expireFrom(after, examine, grace)
	return ids
}

func (f *fixture) expireFrom(after int64, examine int32, grace time.Duration) (expired []int64, last int64) {
	f.Helper()
	for _, row := range run(f, f.Store.ExpireUnleased, db.ExpireUnleasedParams{
		SchemaName: f.Store.Schema(), AllTenants: true, AfterID: after, Examine: examine, Grace: grace.Microseconds(),
	}) {
		if row.Expired {
			expired = append(expired, row.ID)
		} else {
			last = row.ID
		}
	}
	return expired, last
}

// Shows: S3.22
func expiresUnleased(f *fixture) {
	id := f.enqueue(effect{maxAge: time.Hour}, effect{maxAge: 3 * time.Hour}, effect{})[0]
	f.Age(f, 90*time.Minute)
	sameIDs(f, "expired within the grace", f.expire(0, 100, time.Hour))
	f.Age(f, 30*time.Minute)
	sameIDs(f, "expired after it", f.expire(0, 100, time.Hour), id)
	s := f.settled(id)
	same(f, "settlement", []any{s.Outcome, s.Cause, s.Reason, s.Attempt, s.Epoch, s.SettledBy},
		[]any{"expired", "", "never leased within its age", int32(0), int64(0), int64(0)})
	same(f, "queue", len(f.dump().Queue), 2)
}

func expiresNeverLeased(f *fixture) {
	old := effect{maxAge: time.Second}
	f.park(old)
	run(f, f.Store.Release, f.hold(old).released())
	h := f.take(f.leasing())
	retry := h.retried(time.Hour)
	retry.Unspent = true
	run(f, f.Store.SettleRetry, retry)
	f.hold(old)
	f.Age(f, 24*time.Hour)
	f.unchanged("an expiry", func() { sameIDs(f, "expired", f.expire(0, 100, 0)) })
}

func expiresInPages(f *fixture) {
	ids := f.enqueue(effect{maxAge: time.Second}, effect{}, effect{maxAge: time.Second}, effect{maxAge: time.Second})
	f.Age(f, time.Minute)
	expired, last := f.expireFrom(0, 3, 0)
	sameIDs(f, "expired", expired, ids[0], ids[2])
	same(f, "last", last, ids[2])
	expired, last = f.expireFrom(last, 3, 0)
	sameIDs(f, "expired then", expired, ids[3])
	same(f, "last then", last, ids[3])
	expired, last = f.expireFrom(last, 3, 0)
	same(f, "at the end", []int64{int64(len(expired)), last}, []int64{0, 0})
}

func expiresInScope(f *fixture) {
	ids := f.enqueue(effect{maxAge: time.Second, tenant: "a"}, effect{maxAge: time.Second}, effect{tenant: "a"})
	f.Age(f, time.Hour)
	grace := time.Minute.Microseconds()
	same(f, "overdue", run(f, f.Store.CountOverdue, db.CountOverdueParams{Scope: []string{"a"}, Examine: 100, Grace: grace}),
		[]db.CountOverdueRow{{Overdue: 1, Last: ids[2]}})
	same(f, "overdue at the end", run(f, f.Store.CountOverdue, db.CountOverdueParams{AllTenants: true, AfterID: ids[2], Examine: 100}),
		[]db.CountOverdueRow{{}})
	arg := db.ExpireUnleasedParams{SchemaName: f.Store.Schema(), Scope: []string{"a"}, Examine: 100, Grace: grace}
	same(f, "expired", run(f, f.Store.ExpireUnleased, arg), []db.ExpireUnleasedRow{{ID: ids[0], Expired: true}, {ID: ids[2]}})
}
