package dbtest

import (
	"context"
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
	{name: "tells how far the stream goes", run: readsHorizon},
	{name: "tells how long events wait for an open transaction", run: readsHeldHorizon, sideBySide: true},
	{name: "lists readers, with how they stand and how far they are behind", run: listsReaders},
	{name: "lists claims that were over long ago", run: listsLapsedClaims},
	{name: "lists batches that were not sealed for long", run: listsStuckBatches},
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

func (f *fixture) horizon() db.ReadHorizonRow {
	f.Helper()
	return one(f, func(ctx context.Context, _ struct{}) ([]db.ReadHorizonRow, error) { return f.Store.ReadHorizon(ctx) }, struct{}{})
}

func readsHorizon(f *fixture) {
	last := f.appendRead(named("a", "b")...)[1]
	row := f.horizon()
	same(f, "newest, age of the unread, restored", []any{row.Newest, row.Unread, row.Restored}, []any{last, int64(0), false})
	f.Age(f, 2*time.Hour)
	same(f, "removed", f.purgeEvents(false, 10), int64(2))
	same(f, "newest, when it is gone", f.horizon().Newest, last)
}

func readsHeldHorizon(f *fixture) {
	f.appendRead(named("a")...)
	tx, commit, _ := f.begin()
	if _, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(named("b")...)); err != nil {
		f.Fatal(err)
	}
	last := f.append(named("c")...)[0]
	f.Age(f, time.Hour)
	row := f.horizon()
	same(f, "newest", row.Newest, last)
	if waits := time.Duration(row.Unread) * time.Microsecond; waits < time.Hour || waits > 2*time.Hour {
		f.Errorf("beside an open transaction c waits for %v", waits)
	}
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	f.settleStream(last)
	same(f, "after its end", f.horizon().Unread, int64(0))
}

func listsReaders(f *fixture) {
	f.appendRead(named("a", "b", "c")...)
	_, closing := f.read(place{}, func(p *db.ReadEventsParams) { p.Examine = 1 })
	first := placeOf(closing)
	_, closing = f.read(place{}, nil)
	last := placeOf(closing)
	gone := last
	gone.position, gone.transaction = gone.position+1000, gone.transaction+1000
	places := map[string]place{"at the end": last, "behind": first, "gone": gone}
	for name, at := range places {
		f.in(func(tx db.Tx) error {
			rows, err := f.Store.SaveReader(f.Context(), tx, db.SaveReaderParams{
				Name: name, Incarnation: at.incarnation, TransactionID: at.transaction, Position: at.position, Digest: at.digest,
			})
			same(f, "saved "+name, rows, []db.SaveReaderRow{{Saved: true, Known: true}})
			return err
		})
	}
	f.Age(f, 2*time.Hour)
	var standings []int16
	for _, row := range run(f, f.Store.ListReaders, db.ListReadersParams{MaxRows: 10}) {
		standings = append(standings, row.Standing)
		same(f, row.Name+" stands at", row.Position, places[row.Name].position)
		if row.Name != "behind" {
			same(f, row.Name+" is behind by", row.Behind, int64(0))
		} else if late := time.Duration(row.Behind) * time.Microsecond; late < 2*time.Hour || late > 3*time.Hour {
			f.Errorf("behind by %v", late)
		}
	}
	same(f, "standings", standings, []int16{db.StandingGood, db.StandingGood, db.StandingUnknown})
	same(f, "removed", f.purgeEvents(true, 10), int64(3))
	standings = nil
	for _, row := range run(f, f.Store.ListReaders, db.ListReadersParams{MaxRows: 2}) {
		standings = append(standings, row.Standing)
	}
	same(f, "standings when the events are gone", standings, []int16{db.StandingGood, db.StandingExpired})
	rest := run(f, f.Store.ListReaders, db.ListReadersParams{AfterName: "behind", MaxRows: 10})
	if len(rest) != 1 || rest[0].Name != "gone" {
		f.Errorf("after behind: %+v", rest)
	}
}

func listsStuckBatches(f *fixture) {
	old := f.begun(batching("old"))
	f.batch(batching("sealed"), effect{})
	f.batch(batching("completed"))
	f.Age(f, time.Hour)
	f.begun(batching("young"))
	list := func(examine int32) (ids []int64) {
		for _, row := range run(f, f.Store.ListStuckBatches, db.ListStuckBatchesParams{Age: (30 * time.Minute).Microseconds(), Examine: examine}) {
			same(f, "row", []any{row.Tenant, row.Consumer, row.Key, row.Broken, row.Now.After(row.CreatedAt)}, []any{"", "c", "old", false, true})
			ids = append(ids, row.ID)
		}
		return ids
	}
	sameIDs(f, "stuck", list(10), old)
	sameIDs(f, "none looked at", list(0))
}

func listsLapsedClaims(f *fixture) {
	f.claim("first", "d")
	f.Age(f, time.Minute)
	f.claim("second", "d")
	f.end("ended", f.claim("ended", "d"), db.ClaimCompleted, "", "")
	f.Age(f, time.Hour)
	f.claim("young", "d")
	lapsed := func(maxRows int32) (keys []string) {
		f.Helper()
		for _, row := range run(f, f.Store.ListLapsedClaims, db.ListLapsedClaimsParams{Age: (30 * time.Minute).Microseconds(), MaxRows: maxRows}) {
			same(f, "claim", []any{row.Tenant, row.Scope, row.Epoch}, []any{"", "s", int64(1)})
			if over := row.Now.Sub(row.HeldUntil); over < 30*time.Minute || over > 2*time.Hour {
				f.Errorf("%s is over for %v", row.Key, over)
			}
			keys = append(keys, row.Key)
		}
		return keys
	}
	same(f, "lapsed", lapsed(10), []string{"first", "second"})
	same(f, "lapsed first", lapsed(1), []string{"first"})
	f.takeClaim("first", "d")
	same(f, "lapsed after the first was taken", lapsed(10), []string{"second"})
}
