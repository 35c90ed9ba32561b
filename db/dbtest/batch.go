package dbtest

import (
	"errors"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var batchTests = []test{
	{name: "a key begins one batch", run: batchBegins},
	{name: "of many that begin one does, and all learn of it", run: batchBeginsTogether},
	{name: "tenants and consumers are apart, and scopes guard", run: batchesApart},
	{name: "rows are added once, with their messages or not at all", run: batchRowsAdded},
	{name: "rows of two transactions at once are added once", run: batchRowsTwice, sideBySide: true},
	{name: "whatever ends the last message completes", run: batchCompletes},
	{name: "not before it is sealed", run: batchSealedLast},
	{name: "one without open rows is complete when it is sealed", run: batchOfNothing},
	{name: "nothing is added after the seal", run: batchClosed},
	{name: "a seal waits for transactions that add rows", run: batchSealWaits, sideBySide: true},
	{name: "the completion records its message", run: batchRecords},
	{name: "the completion leaves alone what stands under its key", run: batchKeyTaken},
	{name: "a replay opens it again, and each run has its completion", run: batchRuns},
	{name: "a replay before the completion is part of the run", run: batchReplayedEarly},
	{name: "a purge of messages leaves their fates", run: batchPurgedMessages},
	{name: "a message that ended before it was added has its fate", run: batchAdopts},
	{name: "a message that ends while it is added has its fate", run: batchAdoptsRunning, sideBySide: true},
	{name: "a message is in one batch", run: batchOfOne},
	{name: "its rows are counted", run: batchCounts},
	{name: "are listed, the newest first, in pages", run: batchesListed},
	{name: "its rows are listed in pages, of one fate or all", run: batchRowsListed},
	{name: "bounds refuse what Go should have", run: batchChecks},
}

// batchDigest is of what every batch was begun with.
var batchDigest = digestOf("batch")

// batching begins a batch of ("c", "t", "k").
func batching(key string) db.AddBatchParams {
	return db.AddBatchParams{Consumer: "c", Target: "t", Kind: "k", Key: key, Digest: batchDigest, CompleteDigest: []byte{}, CompletePayload: []byte{}}
}

// recording is a batch whose completion records a message of ("done", "mail", "note").
func recording(key string) db.AddBatchParams {
	p := batching(key)
	p.CompleteConsumer, p.CompleteTarget, p.CompleteKind, p.CompleteKey = "done", "mail", "note", "all of "+key
	p.CompletePriority, p.CompleteDigest, p.CompleteMetadata, p.CompletePayload = 3, digestOf("done"), `{"a":"b"}`, []byte("\x00done\xff")
	return p
}

// begun begins a batch that is new.
func (f *fixture) begun(p db.AddBatchParams) int64 {
	f.Helper()
	row := one(f, f.Store.AddBatch, p)
	same(f, "begun", row, db.AddBatchRow{ID: row.ID, Added: true, SameDigest: true})
	return row.ID
}

// fill adds rows for messages, from the number first on.
func filling(batch int64, first int32, messages ...int64) db.AddBatchRowsParams {
	p := db.AddBatchRowsParams{BatchID: batch, AllTenants: true, MessageIds: messages, Reasons: make([]string, len(messages))}
	for i := range messages {
		p.Numbers = append(p.Numbers, first+int32(i))
	}
	return p
}

func (f *fixture) fill(p db.AddBatchRowsParams) (added []int32) {
	f.Helper()
	f.in(func(tx db.Tx) (err error) {
		added, err = f.Store.AddBatchRows(f.Context(), tx, p)
		return err
	})
	return added
}

// batch begins a batch, enqueues the effects as its rows in one transaction, and seals it.
func (f *fixture) batch(p db.AddBatchParams, effects ...effect) (id int64, messages []int64) {
	f.Helper()
	id = f.begun(p)
	f.in(func(tx db.Tx) error {
		rows, err := f.Store.Enqueue(f.Context(), tx, f.params(effects...))
		if err != nil {
			return err
		}
		for _, row := range rows {
			messages = append(messages, row.ID)
		}
		added, err := f.Store.AddBatchRows(f.Context(), tx, filling(id, 1, messages...))
		same(f, "rows added", len(added), len(effects))
		return err
	})
	f.seal(id)
	return id, messages
}

func sealing(id int64) db.SealBatchParams { return db.SealBatchParams{ID: id, AllTenants: true} }

func (f *fixture) seal(id int64) {
	f.Helper()
	sameIDs(f, "sealed", run(f, f.Store.SealBatch, sealing(id)), id)
}

func (f *fixture) count(id int64) db.CountBatchRow {
	f.Helper()
	return one(f, f.Store.CountBatch, db.CountBatchParams{ID: id, AllTenants: true, Detail: true})
}

// completed checks whether a batch is, and of which run.
func (f *fixture) completed(what string, id int64, want bool, run int32) {
	f.Helper()
	c := f.count(id)
	same(f, what+": completed, run", []any{!c.CompletedAt.Equal(tables.Forever), c.Run}, []any{want, run})
}

// rowFates are the fates of a batch in the order of its rows.
func (f *fixture) rowFates(id int64) (fates []int16) {
	f.Helper()
	for _, r := range f.dump().BatchRows {
		if r.BatchID == id {
			fates = append(fates, r.Fate)
		}
	}
	return fates
}

// recorded are the keys that completions recorded, in the order of their messages.
func (f *fixture) recorded() (keys []string) {
	f.Helper()
	for _, m := range f.dump().Messages {
		if m.Consumer == "done" {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

func (f *fixture) findBatch(p db.AddBatchParams) int64 {
	f.Helper()
	return one(f, f.Store.FindBatch, db.FindBatchParams{Tenant: p.Tenant, Consumer: p.Consumer, Key: p.Key, AllTenants: true})
}

func batchBegins(f *fixture) {
	p := recording("b")
	id := f.begun(p)
	f.unchanged("a second begin", func() {
		same(f, "second", one(f, f.Store.AddBatch, p), db.AddBatchRow{ID: id, SameDigest: true})
		p.Digest = digestOf("other")
		same(f, "of other content", one(f, f.Store.AddBatch, p), db.AddBatchRow{ID: id})
	})
	same(f, "found", f.findBatch(p), id)
	c := f.count(id)
	same(f, "names", []string{c.Tenant, c.Consumer, c.Target, c.Kind, c.Key, c.CompleteConsumer, c.CompleteTarget, c.CompleteKind, c.CompleteKey},
		[]string{"", "c", "t", "k", "b", "done", "mail", "note", "all of b"})
	sameInstant(f, "sealed", c.SealedAt, tables.Forever)
	sameInstant(f, "completed", c.CompletedAt, tables.Forever)
	same(f, "run, rows", []int64{int64(c.Run), c.Total}, []int64{1, 0})
}

func batchBeginsTogether(f *fixture) {
	var ids, added tally
	f.together(8, func(_ int, store db.Store) {
		var rows []db.AddBatchRow
		for len(rows) == 0 && !f.Failed() { // begun by another in that very moment
			rows = runOn(f, store.AddBatch, batching("b"))
		}
		for _, row := range rows {
			if ids.add(row.ID); row.Added {
				added.add(row.ID)
			}
		}
	})
	added.once(f, "begun", 1)
	same(f, "batches", ids.size(), 1)
}

func batchesApart(f *fixture) {
	ids := map[int64]bool{}
	for _, tenant := range []string{"", "a"} {
		for _, consumer := range []string{"c", "d"} {
			p := batching("b")
			p.Tenant, p.Consumer = tenant, consumer
			ids[f.begun(p)] = true
		}
	}
	same(f, "batches", len(ids), 4)
	p := batching("b")
	p.Tenant = "a"
	id := f.findBatch(p)
	for _, scope := range [][]string{nil, {""}, {"b", ""}} {
		f.unchanged("out of scope", func() {
			same(f, "found", len(run(f, f.Store.FindBatch, db.FindBatchParams{Tenant: "a", Consumer: "c", Key: "b", Scope: scope})), 0)
			same(f, "counted", len(run(f, f.Store.CountBatch, db.CountBatchParams{ID: id, Scope: scope})), 0)
			same(f, "sealed", len(run(f, f.Store.SealBatch, db.SealBatchParams{ID: id, Scope: scope})), 0)
			fill := filling(id, 1, 0)
			fill.AllTenants, fill.Scope, fill.Reasons[0] = false, scope, "no"
			same(f, "added", len(f.fill(fill)), 0)
		})
	}
	in := []string{"b", "a"}
	same(f, "found in scope", len(run(f, f.Store.FindBatch, db.FindBatchParams{Tenant: "a", Consumer: "c", Key: "b", Scope: in})), 1)
	fill := db.AddBatchRowsParams{BatchID: id, Scope: in, Numbers: []int32{1}, MessageIds: []int64{0}, Reasons: []string{"no"}}
	same(f, "added in scope", f.fill(fill), []int32{1})
	for _, scope := range [][]string{nil, {""}} {
		f.in(func(tx db.Tx) error {
			rows, err := f.Store.FindBatchRows(f.Context(), tx, db.FindBatchRowsParams{BatchID: id, Scope: scope, Numbers: []int32{1}})
			same(f, "rows found out of scope", len(rows), 0)
			return err
		})
		same(f, "listed out of scope", len(run(f, f.Store.ListBatchRows, db.ListBatchRowsParams{BatchID: id, Scope: scope, Fate: db.AnyFate, MaxRows: 9})), 0)
	}
	sameIDs(f, "sealed in scope", run(f, f.Store.SealBatch, db.SealBatchParams{ID: id, Scope: in}), id)
	same(f, "counted in scope", len(run(f, f.Store.CountBatch, db.CountBatchParams{ID: id, Scope: in})), 1)
}

func batchRowsAdded(f *fixture) {
	id := f.begun(batching("b"))
	tx, _, rollback := f.begin()
	rows, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{}))
	if err == nil {
		_, err = f.Store.AddBatchRows(f.Context(), tx, filling(id, 1, rows[0].ID))
	}
	if err := errors.Join(err, rollback()); err != nil {
		f.Fatal(err)
	}
	same(f, "rolled back", len(f.dump().BatchRows), 0)

	messages := f.enqueue(some(2)...)
	p := filling(id, 1, messages[0], messages[1], 0)
	p.Reasons[2] = "no such account"
	same(f, "added", f.fill(p), []int32{1, 2, 3})
	p.Reasons[2] = "another"
	p.Numbers, p.MessageIds, p.Reasons = append(p.Numbers, 4), append(p.MessageIds, 0), append(p.Reasons, "late")
	same(f, "added again", f.fill(p), []int32{4})
	f.in(func(tx db.Tx) error {
		found, err := f.Store.FindBatchRows(f.Context(), tx, db.FindBatchRowsParams{BatchID: id, AllTenants: true, Numbers: []int32{1, 3, 9}})
		slices.SortFunc(found, func(a, b db.FindBatchRowsRow) int { return int(a.Number - b.Number) })
		same(f, "found", found, []db.FindBatchRowsRow{{Number: 1, MessageID: messages[0]}, {Number: 3, Fate: db.RowRejected, Reason: "no such account"}})
		return err
	})
	same(f, "no batch", len(f.fill(filling(id+1, 1, 0))), 0)
}

func batchRowsTwice(f *fixture) {
	id := f.begun(batching("b"))
	p := filling(id, 1, 0, 0, 0)
	p.Reasons = []string{"no", "no", "no"}
	var added tally
	f.together(4, func(_ int, store db.Store) {
		var numbers []int32
		err := store.Transact(f.Context(), func(tx db.Tx) (err error) {
			numbers, err = store.AddBatchRows(f.Context(), tx, p)
			return err
		})
		if err != nil {
			f.Error(err)
		}
		for _, n := range numbers {
			added.add(int64(n))
		}
	})
	added.once(f, "added", 3)
}

// endings are the ways in which messages end, with the fates of their rows. Each gets one message, of the lane of its name, that was enqueued with
// an age of an hour.
var endings = []struct {
	name string
	fate int16
	end  func(*fixture, lane, int64)
}{
	{"delivered", db.RowDelivered, func(f *fixture, l lane, _ int64) { run(f, f.Store.SettleDelivered, f.take(f.leasing(l)).delivered()) }},
	{"dropped", db.RowDelivered, func(f *fixture, l lane, _ int64) { run(f, f.Store.SettleDropped, f.take(f.leasing(l)).dropped()) }},
	{"dead", db.RowDead, func(f *fixture, l lane, _ int64) { run(f, f.Store.SettleDead, f.take(f.leasing(l)).dead("moot")) }},
	{"too old at its retry", db.RowDead, func(f *fixture, l lane, _ int64) {
		retry := f.take(f.leasing(l)).retried(time.Minute)
		retry.MaxAges[0] = 1
		run(f, f.Store.SettleRetry, retry)
	}},
	{"buried", db.RowDead, func(f *fixture, l lane, _ int64) {
		p := f.leasing(l)
		p.MaxAges[0] = 1
		run(f, f.Store.LeaseDue, p)
	}},
	{"cancelled", db.RowCancelled, func(f *fixture, _ lane, id int64) { f.cancel(id) }},
	{"cancelled while leased", db.RowCancelled, func(f *fixture, l lane, id int64) {
		f.take(f.leasing(l))
		f.cancel(id)
	}},
	{"expired", db.RowExpired, func(f *fixture, _ lane, id int64) {
		f.Age(f, 2*time.Hour)
		sameIDs(f, "expired", f.expire(0, 100, 0), id)
	}},
	{"resolved as delivered", db.RowDelivered, func(f *fixture, l lane, id int64) {
		run(f, f.Store.SettleParked, f.take(f.leasing(l)).parked())
		run(f, f.Store.ResolveSettled, resolving("delivered", id))
	}},
	{"resolved as dead", db.RowDead, func(f *fixture, l lane, id int64) {
		run(f, f.Store.SettleParked, f.take(f.leasing(l)).parked())
		run(f, f.Store.ResolveSettled, resolving("dead", id))
	}},
}

// Shows: I25
func batchCompletes(f *fixture) {
	for _, e := range endings {
		id, messages := f.batch(batching(e.name), effect{kind: e.name, maxAge: time.Hour}, effect{kind: "kept"})
		same(f, e.name+": fates before", f.rowFates(id), []int16{db.RowOpen, db.RowOpen})
		e.end(f, lane{kind: e.name}, messages[0])
		same(f, e.name+": fates", f.rowFates(id), []int16{e.fate, db.RowOpen})
		f.completed(e.name+", first", id, false, 1)
		f.cancel(messages[1])
		f.completed(e.name+", then the other", id, true, 1)

		id, messages = f.batch(recording("last "+e.name), effect{kind: e.name, maxAge: time.Hour}, effect{kind: "kept"})
		f.cancel(messages[1])
		f.completed(e.name+", not yet", id, false, 1)
		e.end(f, lane{kind: e.name}, messages[0])
		f.completed(e.name+", last", id, true, 1)
		same(f, e.name+": fates at the end", f.rowFates(id), []int16{e.fate, db.RowCancelled})
	}
	same(f, "recorded", len(f.recorded()), len(endings))
}

func batchSealedLast(f *fixture) {
	id := f.begun(recording("b"))
	messages := f.enqueue(some(2)...)
	same(f, "added", len(f.fill(filling(id, 1, messages...))), 2)
	run(f, f.Store.SettleDelivered, f.take(f.leasing()).delivered())
	f.completed("all ended, not sealed", id, false, 1)
	same(f, "recorded before", len(f.recorded()), 0)
	f.seal(id)
	f.completed("sealed", id, true, 1)
	same(f, "recorded", len(f.recorded()), 1)
	f.unchanged("a second seal", func() { same(f, "sealed again", len(run(f, f.Store.SealBatch, sealing(id))), 0) })
}

func batchOfNothing(f *fixture) {
	id, _ := f.batch(recording("empty"))
	f.completed("empty", id, true, 1)
	id = f.begun(recording("rejected"))
	p := filling(id, 1, 0)
	p.Reasons[0] = "no"
	f.fill(p)
	f.seal(id)
	f.completed("all rejected", id, true, 1)
	same(f, "recorded", f.recorded(), []string{"all of empty", "all of rejected"})
}

func batchClosed(f *fixture) {
	id, _ := f.batch(batching("b"), effect{})
	late := f.enqueue(effect{})
	f.unchanged("an addition after the seal", func() { same(f, "added", len(f.fill(filling(id, 2, late...))), 0) })
}

func batchSealWaits(f *fixture) {
	id := f.begun(batching("b"))
	message := f.enqueue(effect{})
	tx, commit, _ := f.begin()
	if _, err := f.Store.AddBatchRows(f.Context(), tx, filling(id, 1, message...)); err != nil {
		f.Fatal(err)
	}
	sealed := make(chan []int64, 1)
	go func() { sealed <- runOn(f, f.Second.SealBatch, sealing(id)) }()
	second := filling(id, 2, 0)
	second.Reasons[0] = "no"
	_, err := f.Store.AddBatchRows(f.Context(), tx, second)
	if err := errors.Join(err, commit()); err != nil {
		f.Fatal(err)
	}
	sameIDs(f, "sealed", <-sealed, id)
	same(f, "fates", f.rowFates(id), []int16{db.RowOpen, db.RowRejected})
	f.completed("with an open row", id, false, 1)
}

func batchRecords(f *fixture) {
	p := recording("b")
	p.Tenant = "a"
	f.batch(p, effect{tenant: "a"})
	run(f, f.Store.SettleDelivered, f.take(f.leasing(lane{tenant: "a"})).delivered())
	d := f.dump()
	last := d.Messages[len(d.Messages)-1]
	same(f, "message", []any{last.Tenant, last.Consumer, last.Target, last.Kind, last.Key, last.Priority, last.OrderKey, last.MaxAge, last.Metadata},
		[]any{"a", "done", "mail", "note", "all of b", int16(3), "", int64(0), `{"a":"b"}`})
	sameBytes(f, "payload", last.Payload, p.CompletePayload)
	sameBytes(f, "digest", last.Digest, p.CompleteDigest)
	lease := f.leasing(lane{kind: "note", tenant: "a", priority: 3})
	lease.Consumer, lease.Target = "done", "mail"
	sameIDs(f, "leased", f.take(lease).ids, last.ID)
}

func batchKeyTaken(f *fixture) {
	settle := f.hold(effect{consumer: "done", key: "all of c"}).delivered()
	settle.Consumer = "done"
	run(f, f.Store.SettleDelivered, settle)
	f.enqueue(effect{consumer: "done", key: "all of b"})
	for _, key := range []string{"b", "c"} {
		id, _ := f.batch(recording(key))
		f.completed(key, id, true, 1)
	}
	same(f, "messages", len(f.dump().Messages), 2)
}

// Shows: I25
func batchRuns(f *fixture) {
	id, messages := f.batch(recording("b"), some(3)...)
	h := f.take(f.leasing())
	run(f, f.Store.SettleDead, hold{h.ids[:2], h.tokens[:2]}.dead("permanent"))
	run(f, f.Store.SettleDelivered, h.only(2).delivered())
	f.completed("first run", id, true, 1)
	for turn := int32(2); turn < 4; turn++ {
		sameIDs(f, "replayed", run(f, f.Store.ReplayDead, replaying(messages[:2]...)), messages[:2]...)
		f.completed("opened again", id, false, turn)
		same(f, "fates", f.rowFates(id), []int16{db.RowOpen, db.RowOpen, db.RowDelivered})
		h := f.take(f.leasing())
		run(f, f.Store.SettleDead, h.only(0).dead("permanent"))
		f.completed("one of two", id, false, turn)
		run(f, f.Store.SettleDead, h.only(1).dead("permanent"))
		f.completed("another run", id, true, turn)
	}
	same(f, "recorded", f.recorded(), []string{"all of b", "all of b/run-2", "all of b/run-3"})
}

func batchReplayedEarly(f *fixture) {
	id, messages := f.batch(recording("b"), some(2)...)
	h := f.take(f.leasing())
	run(f, f.Store.SettleDead, h.only(0).dead("permanent"))
	run(f, f.Store.ReplayDead, replaying(messages[0]))
	run(f, f.Store.SettleDelivered, h.only(1).delivered())
	f.completed("with a replayed row", id, false, 1)
	run(f, f.Store.SettleDelivered, f.take(f.leasing()).delivered())
	f.completed("all delivered", id, true, 1)
	same(f, "recorded", f.recorded(), []string{"all of b"})
}

func batchPurgedMessages(f *fixture) {
	id, _ := f.batch(batching("b"), some(3)...)
	h := f.take(f.leasing())
	run(f, f.Store.SettleDead, h.only(0).dead("permanent"))
	run(f, f.Store.SettleDelivered, h.only(1).delivered())
	f.cancel(h.ids[2])
	f.Age(f, time.Hour)
	f.purgeUndelivered("dead", 10, time.Minute)
	f.purgeUndelivered("cancelled", 10, time.Minute)
	run(f, f.Store.PurgeDelivered, db.PurgeDeliveredParams{SchemaName: f.Store.Schema(), AllTenants: true, Keep: 1, MaxRows: 10})
	same(f, "messages", len(f.dump().Messages), 0)
	same(f, "fates", f.rowFates(id), []int16{db.RowDead, db.RowDelivered, db.RowCancelled})
	f.completed("purged", id, true, 1)
	rows := run(f, f.Store.ListBatchRows, db.ListBatchRowsParams{BatchID: id, AllTenants: true, Fate: db.AnyFate, MaxRows: 10})
	same(f, "states", []string{rows[0].State, rows[1].State, rows[2].State, rows[0].Key, rows[0].Reason}, []string{"dead", "delivered", "cancelled", "", ""})
}

func batchAdopts(f *fixture) {
	id := f.begun(batching("b"))
	dead, delivered, parked, cancelled := f.bury(effect{}), f.deliver(effect{}), f.park(effect{}), f.enqueue(effect{})
	f.cancel(cancelled...)
	gone := f.hold(effect{})
	run(f, f.Store.SettleDropped, gone.dropped())
	same(f, "added", len(f.fill(filling(id, 1, dead[0], delivered[0], parked[0], cancelled[0], gone.ids[0]))), 5)
	same(f, "fates", f.rowFates(id), []int16{db.RowDead, db.RowDelivered, db.RowOpen, db.RowCancelled, db.RowDelivered})
	f.seal(id)
	run(f, f.Store.ResolveSettled, resolving("delivered", parked...))
	f.completed("the last", id, true, 1)
}

func batchAdoptsRunning(f *fixture) {
	h := f.hold(some(2)...)
	id := f.begun(batching("b"))
	tx, commit, _ := f.begin()
	if _, err := f.Store.AddBatchRows(f.Context(), tx, filling(id, 1, h.ids...)); err != nil {
		f.Fatal(err)
	}
	settled := make(chan []int64, 1)
	go func() { settled <- runOn(f, f.Second.SettleDelivered, h.delivered()) }()
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	sameIDs(f, "settled", <-settled, h.ids...)
	f.seal(id)
	same(f, "fates", f.rowFates(id), []int16{db.RowDelivered, db.RowDelivered})
	f.completed("sealed after", id, true, 1)
}

func batchOfOne(f *fixture) {
	first, messages := f.batch(batching("a"), effect{})
	second := f.begun(batching("b"))
	same(f, "added to another", len(f.fill(filling(second, 1, messages...))), 0)
	same(f, "under another number", len(f.fill(filling(first, 2, messages...))), 0)
	same(f, "rows", len(f.dump().BatchRows), 1)
}
