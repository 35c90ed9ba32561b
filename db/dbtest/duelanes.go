package dbtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var dueLanesTests = []test{
	{name: "lists each lane once, with the instant it came due", run: listsLanes},
	{name: "leaves out what is not due, parked or settled", run: listsDueOnly},
	{name: "stays with consumer, target and kind of the seed", run: listsSeedOnly},
	{name: "goes on after a lane", run: listsOn},
	{name: "goes on after the last lane of each seed", run: listsOnEach},
	{name: "within one tenant", run: listsTenant},
	{name: "leaves out paused lanes", run: listsUnpaused},
}

// seeds asks for every lane of the kinds of consumer "c" and target "t".
func seeds(kinds ...string) db.DueLanesParams {
	n := len(kinds)
	return db.DueLanesParams{
		MaxRows: 1000, Kinds: kinds, Consumers: slices.Repeat([]string{"c"}, n), Targets: slices.Repeat([]string{"t"}, n),
		AfterTenants: make([]string, n), AfterPriorities: slices.Repeat([]int32{db.FirstPriority}, n), AllTenants: true,
	}
}

// lanes returns (seed, tenant, priority) of the due lanes, in that order.
func (f *fixture) lanes(p db.DueLanesParams) []db.DueLanesRow {
	f.Helper()
	rows := run(f, f.Store.DueLanes, p)
	for i := range rows {
		rows[i].DueAt = time.Time{}
	}
	slices.SortFunc(rows, func(a, b db.DueLanesRow) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Priority, b.Priority))
	})
	return rows
}

func listsLanes(f *fixture) {
	f.enqueue(effect{}, effect{}, effect{priority: -7}, effect{tenant: "a"}, effect{tenant: "b", priority: 32767}, effect{kind: "other"},
		effect{tenant: "b", priority: -32768})
	same(f, "lanes", f.lanes(seeds("absent", "k", "other")), []db.DueLanesRow{
		{Seed: 2, Priority: -7}, {Seed: 2}, {Seed: 2, Tenant: "a"}, {Seed: 2, Tenant: "b", Priority: -32768}, {Seed: 2, Tenant: "b", Priority: 32767},
		{Seed: 3},
	})
	first := f.dump().Queue[5]
	sameInstant(f, "due", one(f, f.Store.DueLanes, seeds("other")).DueAt, first.DueAt)
}

func listsDueOnly(f *fixture) {
	f.park(effect{tenant: "a"})
	f.deliver(effect{tenant: "b"})
	f.enqueue(effect{tenant: "c", delay: time.Hour}, effect{tenant: "d"}, effect{tenant: "e", delay: time.Hour}, effect{tenant: "f"})
	same(f, "lanes", f.lanes(seeds("k")), []db.DueLanesRow{{Seed: 1, Tenant: "d"}, {Seed: 1, Tenant: "f"}})
	f.Age(f, time.Hour)
	same(f, "lanes an hour later", len(f.lanes(seeds("k"))), 4)
}

func listsSeedOnly(f *fixture) {
	f.enqueue(effect{consumer: "other"}, effect{target: "other"}, effect{kind: "other"})
	same(f, "lanes", len(f.lanes(seeds("k"))), 0)
	p := seeds("k", "k", "other")
	p.Consumers[0], p.Targets[1] = "other", "other"
	same(f, "lanes of each", f.lanes(p), []db.DueLanesRow{{Seed: 1}, {Seed: 2}, {Seed: 3}})
}

func listsOn(f *fixture) {
	for _, tenant := range []string{"", "a", "b"} {
		f.enqueue(effect{tenant: tenant, priority: 1}, effect{tenant: tenant, priority: 2}, effect{tenant: tenant, priority: 3, delay: time.Hour})
	}
	p := seeds("k")
	p.MaxRows = 2
	var pages [][]db.DueLanesRow
	for {
		rows := f.lanes(p)
		if len(rows) == 0 {
			break
		}
		pages = append(pages, rows)
		last := rows[len(rows)-1]
		p.AfterTenants[0], p.AfterPriorities[0] = last.Tenant, last.Priority
	}
	same(f, "pages", pages, [][]db.DueLanesRow{
		{{Seed: 1, Priority: 1}, {Seed: 1, Priority: 2}},
		{{Seed: 1, Tenant: "a", Priority: 1}, {Seed: 1, Tenant: "a", Priority: 2}},
		{{Seed: 1, Tenant: "b", Priority: 1}, {Seed: 1, Tenant: "b", Priority: 2}},
	})
}

func listsOnEach(f *fixture) {
	for _, tenant := range []string{"a", "b", "d", "e"} {
		f.enqueue(effect{tenant: tenant}, effect{tenant: tenant, kind: "other", priority: 1}, effect{tenant: tenant, kind: "other", priority: 2})
	}
	p := seeds("k", "other")
	p.MaxRows = 5
	seen := map[db.DueLanesRow]int{}
	for rows := f.lanes(p); len(rows) > 0; rows = f.lanes(p) {
		for _, row := range rows {
			seen[row]++
			p.AfterTenants[row.Seed-1], p.AfterPriorities[row.Seed-1] = row.Tenant, row.Priority
		}
	}
	same(f, "lanes", len(seen), 12)
	for row, n := range seen {
		same(f, fmt.Sprintf("times %+v was listed", row), n, 1)
	}
}

func listsTenant(f *fixture) {
	f.enqueue(effect{tenant: "a"}, effect{tenant: "b", priority: 1}, effect{tenant: "b", priority: 2}, effect{tenant: "c"}, effect{})
	p := seeds("k", "k")
	p.AllTenants = false
	p.AfterTenants[0], p.AfterTenants[1] = "b", ""
	same(f, "lanes", f.lanes(p), []db.DueLanesRow{{Seed: 1, Tenant: "b", Priority: 1}, {Seed: 1, Tenant: "b", Priority: 2}, {Seed: 2}})
	p.AfterPriorities[0], p.AfterPriorities[1] = 1, 0
	same(f, "lanes after the first", f.lanes(p), []db.DueLanesRow{{Seed: 1, Tenant: "b", Priority: 2}})
}

func listsUnpaused(f *fixture) {
	f.enqueue(effect{tenant: "a"}, effect{tenant: "b"}, effect{kind: "other", tenant: "a"}, effect{kind: "other", tenant: "b"})
	f.pause("c", "t", "k", "a", 0)
	f.pause("*", "*", "other", "*", 1)
	f.pause("elsewhere", "t", "k", "b", 1)
	same(f, "lanes", f.lanes(seeds("k", "other")), []db.DueLanesRow{{Seed: 1, Tenant: "b"}})
}
