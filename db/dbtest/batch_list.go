package dbtest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

func batchCounts(f *fixture) {
	id := f.begun(batching("b"))
	dead, delivered, parked, cancelled := f.bury(some(2)...), f.deliver(some(3)...), f.park(effect{}), f.enqueue(effect{})
	f.cancel(cancelled...)
	leased := f.hold(some(2)...)
	waiting := f.enqueue(some(4)...)
	messages := slices.Concat(dead, delivered, parked, cancelled, leased.ids, waiting, []int64{0, 0})
	p := filling(id, 1, messages...)
	p.Reasons[len(messages)-1], p.Reasons[len(messages)-2] = "no", "no"
	f.fill(p)
	f.begun(batching("other"))
	c := f.count(id)
	same(f, "counts", []int64{c.Total, c.Open, c.Delivered, c.Dead, c.Cancelled, c.Expired, c.Rejected, c.Leased, c.Parked},
		[]int64{15, 7, 3, 2, 1, 0, 2, 2, 1})
	c = one(f, f.Store.CountBatch, db.CountBatchParams{ID: id, AllTenants: true})
	same(f, "without detail", []int64{c.Total, c.Open, c.Leased, c.Parked}, []int64{15, 7, 0, 0})
	same(f, "of none", len(run(f, f.Store.CountBatch, db.CountBatchParams{ID: 1 << 60, AllTenants: true})), 0)
}

func batchesListed(f *fixture) {
	var ids []int64
	for i := range 6 {
		p := batching(fmt.Sprint(i))
		p.Tenant = []string{"", "a"}[i%2]
		p.Consumer = []string{"c", "c", "d"}[i%3]
		ids = append(ids, f.begun(p))
	}
	f.seal(ids[0])
	f.seal(ids[5])
	list := func(change func(*db.ListBatchesParams)) (matched []int64, last int64) {
		f.Helper()
		p := db.ListBatchesParams{AllTenants: true, BeforeID: math.MaxInt64, Examine: 100, MaxRows: 100}
		change(&p)
		rows := run(f, f.Store.ListBatches, p)
		for i, row := range rows {
			if row.Matched {
				matched = append(matched, row.ID)
			} else if last = row.ID; i != len(rows)-1 {
				f.Errorf("not matched, and not the last: %+v", row)
			}
		}
		return matched, last
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	check := func(what string, wantLast int64, want []int64, change func(*db.ListBatchesParams)) {
		f.Helper()
		got, last := list(change)
		same(f, what, append(got, last), append(slices.Clone(want), wantLast))
	}
	check("all", 0, newest, func(*db.ListBatchesParams) {})
	check("a page", 0, newest[:2], func(p *db.ListBatchesParams) { p.MaxRows = 2 })
	check("the next", 0, newest[2:4], func(p *db.ListBatchesParams) { p.MaxRows, p.BeforeID = 2, newest[1] })
	check("a tenant", 0, []int64{ids[5], ids[3], ids[1]}, func(p *db.ListBatchesParams) { p.AllTenants, p.Scope = false, []string{"a"} })
	check("a consumer", 0, []int64{ids[5], ids[2]}, func(p *db.ListBatchesParams) { p.Consumer = "d" })
	check("unfinished", 0, newest[1:5], func(p *db.ListBatchesParams) { p.Unfinished = true })
	check("few looked at", ids[3], []int64{ids[5]}, func(p *db.ListBatchesParams) { p.Consumer, p.Examine = "d", 3 })
	check("none", 0, nil, func(p *db.ListBatchesParams) { p.BeforeID = ids[0] })
	row := run(f, f.Store.ListBatches, db.ListBatchesParams{AllTenants: true, BeforeID: ids[1], Examine: 1, MaxRows: 1})[0]
	c := f.count(ids[0])
	same(f, "names", []any{row.Tenant, row.Consumer, row.Target, row.Kind, row.Key, row.Run}, []any{"", "c", "t", "k", "0", int32(1)})
	sameInstant(f, "created", row.CreatedAt, c.CreatedAt)
	sameInstant(f, "sealed", row.SealedAt, c.SealedAt)
	sameInstant(f, "completed", row.CompletedAt, c.CompletedAt)
}

func batchRowsListed(f *fixture) {
	id := f.begun(batching("b"))
	dead, parked := f.bury(effect{key: "a"}), f.park(effect{key: "b"})
	h := f.hold(effect{key: "c"})
	delivered := h.delivered()
	delivered.Results[0] = "receipt 7"
	run(f, f.Store.SettleDelivered, delivered)
	leased := f.hold(effect{key: "d"})
	pending := f.enqueue(effect{key: "e"})
	p := filling(id, 1, dead[0], parked[0], h.ids[0], leased.ids[0], pending[0], 0)
	p.Reasons[5] = "no such account"
	f.fill(p)
	list := func(fate int16, after, limit int32) []db.ListBatchRowsRow {
		f.Helper()
		return run(f, f.Store.ListBatchRows, db.ListBatchRowsParams{BatchID: id, AllTenants: true, Fate: fate, AfterNumber: after, MaxRows: limit})
	}
	var got []string
	for _, r := range list(db.AnyFate, 0, 10) {
		got = append(got, fmt.Sprintf("%d %t %d %s %s %d %s %s %s %t", r.Number, r.MessageID != 0, r.Fate, r.Key, r.State, r.Attempt, r.Cause, r.Reason, r.Result,
			!r.SettledAt.Equal(db.Never)))
	}
	same(f, "rows", got, []string{
		"1 true 2 a dead 1 permanent no such account  true", "2 true 0 b parked 1  no answer  false", "3 true 1 c delivered 1   receipt 7 true",
		"4 true 0 d leased 1    false", "5 true 0 e pending 0    false", "6 false 5  rejected 0  no such account  false",
	})
	numbers := func(rows []db.ListBatchRowsRow) (all []int32) {
		for _, r := range rows {
			all = append(all, r.Number)
		}
		return all
	}
	same(f, "a page", numbers(list(db.AnyFate, 0, 2)), []int32{1, 2})
	same(f, "the next", numbers(list(db.AnyFate, 2, 2)), []int32{3, 4})
	same(f, "open ones", numbers(list(db.RowOpen, 0, 2)), []int32{2, 4})
	same(f, "the next", numbers(list(db.RowOpen, 4, 2)), []int32{5})
	same(f, "dead ones", numbers(list(db.RowDead, 0, 10)), []int32{1})
	same(f, "at the end", len(list(db.AnyFate, 6, 10)), 0)
}

// purgeBatches takes one step and returns how many batches and rows went.
func (f *fixture) purgeBatches(keep time.Duration, limit int32, scope ...string) []int64 {
	f.Helper()
	row := one(f, f.Store.PurgeBatches, db.PurgeBatchesParams{
		SchemaName: f.Store.Schema(), Keep: keep.Microseconds(), MaxRows: limit, AllTenants: scope == nil, Scope: scope,
	})
	return []int64{row.Batches, row.RowsRemoved}
}

func retainsBatches(f *fixture) {
	first, messages := f.batch(batching("first"), some(5)...)
	f.cancel(messages...)
	f.Age(f, time.Hour)
	second, messages := f.batch(batching("second"), some(2)...)
	f.cancel(messages...)
	open, _ := f.batch(batching("open"), effect{})
	filling := f.begun(batching("filling"))
	f.unchanged("too early", func() { same(f, "gone", f.purgeBatches(2*time.Hour, 10), []int64{0, 0}) })
	f.unchanged("out of scope", func() { same(f, "gone", f.purgeBatches(time.Minute, 10, "a"), []int64{0, 0}) })
	for _, want := range [][]int64{{0, 3}, {1, 2}, {0, 0}} {
		same(f, "gone after half an hour", f.purgeBatches(30*time.Minute, 3), want)
	}
	same(f, "gone at once", f.purgeBatches(-time.Minute, 10, "", "a"), []int64{1, 2})
	same(f, "gone then", f.purgeBatches(-time.Minute, 10), []int64{0, 0})
	var left []int64
	for _, b := range f.dump().Batches {
		left = append(left, b.ID)
	}
	sameIDs(f, "left", left, open, filling)
	same(f, "purged", []bool{first < second, len(f.dump().BatchRows) == 1}, []bool{true, true})
	f.begun(batching("first"))
}

func batchChecks(f *fixture) {
	for what, change := range map[string]func(*db.AddBatchParams){
		"blank tenant": func(p *db.AddBatchParams) { p.Tenant = " " }, "wildcard": func(p *db.AddBatchParams) { p.Consumer = "*" },
		"blank target": func(p *db.AddBatchParams) { p.Target = "" }, "long kind": func(p *db.AddBatchParams) { p.Kind = strings.Repeat("k", 129) },
		"blank key": func(p *db.AddBatchParams) { p.Key = "\t" }, "long key": func(p *db.AddBatchParams) { p.Key = strings.Repeat("k", 201) },
		"short digest":         func(p *db.AddBatchParams) { p.Digest = []byte{1} },
		"completion of nobody": func(p *db.AddBatchParams) { p.CompleteConsumer = "" },
		"no target":            func(p *db.AddBatchParams) { p.CompleteTarget = "" }, "wild kind": func(p *db.AddBatchParams) { p.CompleteKind = "*" },
		"long completion key":   func(p *db.AddBatchParams) { p.CompleteKey = strings.Repeat("k", 241) },
		"no completion digest":  func(p *db.AddBatchParams) { p.CompleteDigest = []byte{} },
		"long completion":       func(p *db.AddBatchParams) { p.CompletePayload = bytes.Repeat([]byte{1}, 1<<20+1) },
		"long metadata":         func(p *db.AddBatchParams) { p.CompleteMetadata = strings.Repeat("m", 65537) },
		"NUL in completion key": func(p *db.AddBatchParams) { p.CompleteKey = "a\x00" },
	} {
		p := recording("b")
		change(&p)
		if _, err := f.Store.AddBatch(f.Context(), p); err == nil {
			f.Errorf("%s: begun", what)
		}
	}
	same(f, "batches", len(f.dump().Batches), 0)
	id := f.begun(batching("b"))
	for what, change := range map[string]func(*db.AddBatchRowsParams){
		"number 0": func(p *db.AddBatchRowsParams) { p.Numbers[0] = 0 }, "no reason": func(p *db.AddBatchRowsParams) { p.Reasons[0] = " " },
		"long reason":         func(p *db.AddBatchRowsParams) { p.Reasons[0] = strings.Repeat("r", 1025) },
		"reason of a message": func(p *db.AddBatchRowsParams) { p.MessageIds[0] = 1 },
	} {
		tx, _, rollback := f.begin()
		p := filling(id, 1, 0)
		p.Reasons[0] = "no"
		change(&p)
		if _, err := f.Store.AddBatchRows(f.Context(), tx, p); err == nil {
			f.Errorf("%s: added", what)
		}
		_ = rollback()
	}
	same(f, "rows", len(f.dump().BatchRows), 0)
}
