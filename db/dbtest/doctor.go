package dbtest

import (
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var doctorTests = []test{
	{name: "finds nothing wrong with messages of every kind", run: auditsSound},
	{name: "walks over all messages in bounded steps", run: auditsInSteps},
	{name: "lists the heads that hold others up, with why", run: listsHeads},
	{name: "lists no head that is young, holds nobody up or is not one", run: listsNoHead},
	{name: "walks over all keys in bounded steps", run: listsHeadsInSteps},
	{name: "reads what surrounds the tables", run: readsSurroundings},
}

// audit looks at the messages above an id and returns the closing row.
func (f *fixture) audit(after int64, examine int32) db.AuditMessagesRow {
	f.Helper()
	return one(f, f.Store.AuditMessages, db.AuditMessagesParams{AfterID: after, Examine: examine})
}

func auditsSound(f *fixture) {
	same(f, "of nothing", f.audit(0, 10), db.AuditMessagesRow{})
	f.deliver(some(2)...)
	f.bury(ordered("a", 1)...)
	f.park(ordered("b", 1)...)
	f.blocked("x")
	f.cancel(f.enqueue(effect{})...)
	f.hold(append(ordered("c", 1), some(2)...)...)
	lost := f.hold(effect{kind: "lost", order: "d"})
	f.Age(f, time.Hour)
	messages := f.dump().Messages
	same(f, "closing row", f.audit(0, 100), db.AuditMessagesRow{Messages: int64(len(messages)), Highest: lost.ids[0]})
}

func auditsInSteps(f *fixture) {
	ids := f.enqueue(some(7)...)
	f.cancel(ids[1], ids[2], ids[5])
	var seen int64
	for after, steps := int64(0), 0; ; steps++ {
		row := f.audit(after, 2)
		seen += row.Messages
		same(f, "highest", row.Highest, ids[6])
		if row.ID == 0 {
			break
		}
		if after = row.ID; steps > len(ids) {
			f.Fatalf("no end at %+v", row)
		}
	}
	same(f, "messages", seen, int64(len(ids)))
	same(f, "from the middle", f.audit(ids[3], 100), db.AuditMessagesRow{Messages: 3, Highest: ids[6]})
}

// heads lists the heads that have waited for a minute.
func (f *fixture) heads() []db.ListHeadsRow {
	f.Helper()
	rows := run(f, f.Store.ListHeads, db.ListHeadsParams{Examine: 1000, Age: time.Minute.Microseconds()})
	closing := rows[len(rows)-1]
	same(f, "closing row", []any{closing.ID, closing.Consumer, closing.OrderKey}, []any{int64(0), "", ""})
	return rows[:len(rows)-1]
}

func listsHeads(f *fixture) {
	leased := f.take(f.leasing(lane{tenant: f.orderedIn("leased")}))
	lost := f.take(f.leasing(lane{tenant: f.orderedIn("lost")}))
	failing := f.take(f.leasing(lane{tenant: f.orderedIn("failing")}))
	run(f, f.Store.SettleRetry, failing.retried(time.Hour))
	parking := f.take(f.leasing(lane{tenant: f.orderedIn("parked")}))
	run(f, f.Store.SettleParked, parking.parked())
	f.orderedIn("paused")
	f.pause("*", "*", "*", "paused", 0)
	f.orderedIn("waiting")
	f.orderedIn("at work")
	blocker := f.blocked("blocked")
	f.enqueue(effect{tenant: "blocked", order: "o"})
	f.Age(f, 10*time.Minute)
	f.take(f.leasing(lane{tenant: "leased"}))
	f.take(f.leasing(lane{tenant: "at work"})) // for the first time, so it is not what holds its key up
	rows := f.heads()
	var tenants []string
	for _, row := range rows {
		tenants = append(tenants, row.Tenant)
		same(f, "key", []string{row.Consumer, row.Target, row.OrderKey, row.Kind}, []string{"c", "t", "o", "k"})
		same(f, row.Tenant+" parked", row.Parked, row.Tenant == "parked")
		same(f, row.Tenant+" paused", row.Paused, row.Tenant == "paused")
		q := f.queued(row.ID)
		same(f, "attempt", row.Attempt, q.Attempt)
		sameInstant(f, "leased until", row.LeasedUntil, q.LeasedUntil)
		sameInstant(f, "due", row.DueAt, q.DueAt)
		sameInstant(f, "born", row.BornAt, q.BornAt)
		if waited := row.Now.Sub(row.BornAt); waited < 10*time.Minute || waited > time.Hour {
			f.Errorf("%s has waited for %v", row.Tenant, waited)
		}
		want := map[string]int64{"leased": leased.ids[0], "lost": lost.ids[0], "failing": failing.ids[0], "parked": parking.ids[0]}[row.Tenant]
		if want != 0 && row.ID != want {
			f.Errorf("the head of %s is %d, want %d", row.Tenant, row.ID, want)
		}
		same(f, row.Tenant+" is blocked by", row.Blocker, map[string]int64{"blocked": blocker}[row.Tenant])
	}
	slices.Sort(tenants)
	same(f, "tenants", tenants, []string{"blocked", "failing", "leased", "lost", "parked", "paused", "waiting"})
}

// orderedIn enqueues two messages of one key for a tenant, and returns it.
func (f *fixture) orderedIn(tenant string) string {
	f.Helper()
	f.enqueue(effect{tenant: tenant, order: "o"}, effect{tenant: tenant, order: "o"})
	return tenant
}

func listsNoHead(f *fixture) {
	f.enqueue(effect{order: "alone"}, effect{}, effect{})
	f.Age(f, time.Hour)
	f.orderedIn("young")
	later := effect{tenant: "later", order: "o", delay: 2 * time.Hour}
	f.enqueue(later, later)
	same(f, "heads", f.heads(), []db.ListHeadsRow{})
}

func listsHeadsInSteps(f *fixture) {
	for _, tenant := range []string{"a", "b", "c", "d", "e"} {
		f.orderedIn(tenant)
	}
	f.Age(f, time.Hour)
	var tenants []string
	for next, steps := (db.ListHeadsParams{Examine: 2}), 0; ; steps++ {
		rows := run(f, f.Store.ListHeads, next)
		for _, row := range rows[:len(rows)-1] {
			tenants = append(tenants, row.Tenant)
		}
		closing := rows[len(rows)-1]
		if closing.ID != 0 || steps > 5 {
			f.Fatalf("step %d ends with %+v", steps, closing)
		}
		if closing.Consumer == "" {
			break
		}
		next.AfterConsumer, next.AfterTarget, next.AfterTenant, next.AfterOrderKey = closing.Consumer, closing.Target, closing.Tenant, closing.OrderKey
	}
	same(f, "tenants", tenants, []string{"a", "b", "c", "d", "e"})
}

func readsSurroundings(f *fixture) {
	facts := map[string]map[string]string{"setting": {}, "table": {}, "index": {}, "session": {}}
	for _, row := range run(f, f.Store.ReadSurroundings, db.ReadSurroundingsParams{SchemaName: f.Store.Schema()}) {
		facts[row.Section][row.Name] = row.Value // a section of another name panics
	}
	if facts["setting"]["role"] == "" || facts["setting"]["fsync"] == "" {
		f.Errorf("settings: %v", facts["setting"])
	}
	if _, ok := facts["table"]["queue"]; !ok {
		f.Errorf("tables: %v", facts["table"])
	}
	for index, state := range facts["index"] {
		same(f, index, state, "valid")
	}
	same(f, "an index", facts["index"]["queue_due"], "valid")
	for _, fact := range []string{"sees all", "prepared transaction"} {
		if facts["session"][fact] == "" {
			f.Errorf("no %s in %v", fact, facts["session"])
		}
	}
}
