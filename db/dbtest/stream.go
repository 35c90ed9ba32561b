package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var streamTests = []test{
	{name: "reads on after a place", run: readsOn},
	{name: "filters by tenant, type and stream, and says how far it looked", run: readsFiltered},
	{name: "ends a page at its bytes", run: readsBytes},
	{name: "tells a place before anything from one after which all was purged", run: readsFromNothing},
	{name: "ends before the oldest open transaction", run: readsToHorizon, sideBySide: true},
	{name: "tells a place that never was from one whose successors are gone", run: readsStanding},
	{name: "gives its end", run: readsEnd},
	{name: "finds a source by all that names it", run: readsSource},
}

var retainTests = []test{
	{name: "events go oldest first, and the mark tells", run: retainsPrefix},
	{name: "events stay for a reader unless forced", run: retainsForReader},
	{name: "claims go once they ended, or were abandoned, long ago", run: retainsClaims},
	{name: "receipts of an event that may still be delivered stay", run: retainsReceipts},
	{name: "batches go in steps once they were completed long ago", run: retainsBatches},
}

// A place is where a reader stands.
type place struct {
	incarnation           string
	transaction, position int64
	digest                []byte
}

// read reads events of every tenant after a place: their ids, and the closing row.
func (f *fixture) read(after place, change func(*db.ReadEventsParams)) (ids []string, closing db.ReadEventsRow) {
	f.Helper()
	p := db.ReadEventsParams{
		Incarnation: after.incarnation, AfterTransactionID: after.transaction, AfterPosition: after.position, AfterDigest: append([]byte{}, after.digest...),
		AllTenants: true, Scope: []string{}, Types: []string{}, Streams: []string{}, Examine: 1000, MaxRows: 100, MaxBytes: 1 << 20,
	}
	if change != nil {
		change(&p)
	}
	rows := run(f, f.Store.ReadEvents, p)
	if len(rows) == 0 || !rows[len(rows)-1].Closing {
		f.Fatalf("no closing row in %+v", rows)
	}
	for _, row := range rows[:len(rows)-1] {
		if row.Closing {
			f.Errorf("a closing row that is not the last: %+v", row)
		}
		ids = append(ids, row.EventID)
	}
	return ids, rows[len(rows)-1]
}

func placeOf(row db.ReadEventsRow) place {
	return place{row.Incarnation, row.TransactionID, row.Position, row.Digest}
}

// named is n events of one transaction.
func named(ids ...string) []event {
	events := make([]event, len(ids))
	for i, id := range ids {
		events[i].id = id
	}
	return events
}

func readsOn(f *fixture) {
	f.appendRead(named("a", "b")...)
	f.appendRead(named("c")...)
	ids, closing := f.read(place{}, nil)
	same(f, "from the oldest", ids, []string{"a", "b", "c"})
	same(f, "standing", closing.Standing, int16(db.StandingGood))
	ids, again := f.read(placeOf(closing), nil)
	same(f, "after the last", len(ids), 0)
	same(f, "the place stays", placeOf(again), placeOf(closing))
	f.appendRead(named("d")...)
	ids, _ = f.read(placeOf(closing), nil)
	same(f, "what came since", ids, []string{"d"})
	ids, closing = f.read(place{}, func(p *db.ReadEventsParams) { p.MaxRows = 2 })
	same(f, "at most two", ids, []string{"a", "b"})
	ids, _ = f.read(placeOf(closing), func(p *db.ReadEventsParams) { p.MaxRows = 2 })
	same(f, "the next two", ids, []string{"c", "d"})
	ids, closing = f.read(place{}, func(p *db.ReadEventsParams) { p.Examine = 3 })
	same(f, "looking at three", ids, []string{"a", "b", "c"})
	ids, _ = f.read(placeOf(closing), nil)
	same(f, "and on from there", ids, []string{"d"})
}

func readsFiltered(f *fixture) {
	f.appendRead(
		event{id: "a", kind: "x", stream: "s"}, event{id: "b", kind: "y"}, event{id: "c", kind: "x", tenant: "acme"}, event{id: "d", kind: "z", stream: "t"},
	)
	for _, test := range []struct {
		name   string
		change func(*db.ReadEventsParams)
		want   []string
	}{
		{"types", func(p *db.ReadEventsParams) { p.Types = []string{"x", "z"} }, []string{"a", "c", "d"}},
		{"streams", func(p *db.ReadEventsParams) { p.Streams = []string{"s", "t"} }, []string{"a", "d"}},
		{"no stream", func(p *db.ReadEventsParams) { p.Streams = []string{""} }, []string{"b", "c"}},
		{"a tenant", func(p *db.ReadEventsParams) { p.AllTenants, p.Scope = false, []string{"acme"} }, []string{"c"}},
		{"no tenant", func(p *db.ReadEventsParams) { p.AllTenants, p.Scope = false, []string{""} }, []string{"a", "b", "d"}},
		{"all of it", func(p *db.ReadEventsParams) {
			p.AllTenants, p.Scope, p.Types, p.Streams = false, []string{""}, []string{"x"}, []string{"s"}
		}, []string{"a"}},
	} {
		ids, closing := f.read(place{}, test.change)
		same(f, test.name, ids, test.want)
		_, end := f.read(place{}, nil)
		same(f, test.name+": how far it looked", placeOf(closing), placeOf(end))
	}
	none, closing := f.read(place{}, func(p *db.ReadEventsParams) { p.Types, p.Examine = []string{"z"}, 2 })
	same(f, "nothing among the first two", len(none), 0)
	ids, _ := f.read(placeOf(closing), func(p *db.ReadEventsParams) { p.Types = []string{"z"} })
	same(f, "found from there", ids, []string{"d"})
}

func readsBytes(f *fixture) {
	f.appendRead(
		event{id: "a", payload: make([]byte, 60)}, event{id: "b", kind: "other", payload: make([]byte, 500)}, event{id: "c", payload: make([]byte, 60)},
		event{id: "d"}, event{id: "e", payload: make([]byte, 500)}, event{id: "f"},
	)
	var pages [][]string
	at := place{}
	for range 3 {
		ids, closing := f.read(at, func(p *db.ReadEventsParams) { p.MaxBytes, p.Types = 100, []string{"happened"} })
		pages, at = append(pages, ids), placeOf(closing)
	}
	same(f, "pages", pages, [][]string{{"a", "c"}, {"d", "e"}, {"f"}})
}

func readsFromNothing(f *fixture) {
	_, start := f.read(place{}, nil)
	f.appendRead(named("a")...)
	ids, _ := f.read(placeOf(start), nil)
	same(f, "after the end of an empty stream", ids, []string{"a"})
	f.Age(f, 2*time.Hour)
	f.purgeEvents(false, 10)
	_, closing := f.read(placeOf(start), nil)
	same(f, "once that was purged", closing.Standing, int16(db.StandingExpired))
}

// A transaction that is still open hides what later ones committed, so that nobody goes past it; then all comes, in one order.
func readsToHorizon(f *fixture) {
	f.appendRead(named("a")...)
	tx, commit, _ := f.begin()
	if _, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(named("b")...)); err != nil {
		f.Fatal(err)
	}
	var last []db.AppendEventsRow
	err := f.Second.Transact(f.Context(), func(tx db.Tx) (err error) {
		last, err = f.Second.AppendEvents(f.Context(), tx, f.eventParams(named("c")...))
		return err
	})
	if err != nil || len(last) != 1 {
		f.Fatalf("%+v, %v", last, err)
	}
	ids, closing := f.read(place{}, nil)
	same(f, "beside the open transaction", ids, []string{"a"})
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	f.settleStream(last[0].Position)
	ids, _ = f.read(placeOf(closing), nil)
	same(f, "after its end", ids, []string{"b", "c"})
}

func readsStanding(f *fixture) {
	f.appendRead(named("a", "b")...)
	_, end := f.read(place{}, nil)
	good := placeOf(end)
	for name, bad := range map[string]func(*place){
		"another incarnation": func(p *place) { p.incarnation = fmt.Sprintf("%032x", 7) },
		"another event":       func(p *place) { p.digest = digestOf("other") },
		"no event":            func(p *place) { p.position += 1000 },
		"another transaction": func(p *place) { p.transaction++ },
	} {
		at := good
		bad(&at)
		ids, closing := f.read(at, nil)
		if len(ids) != 0 || closing.Standing != db.StandingUnknown {
			f.Errorf("%s: %q, standing %d", name, ids, closing.Standing)
		}
	}
}

func readsEnd(f *fixture) {
	end := func() db.ReadEndRow {
		f.Helper()
		rows, err := f.Store.ReadEnd(f.Context())
		if err != nil || len(rows) != 1 {
			f.Fatalf("%+v, %v", rows, err)
		}
		return rows[0]
	}
	before := end()
	f.appendRead(named("a", "b")...)
	after := end()
	_, closing := f.read(place{}, nil)
	same(f, "the end", place{after.Incarnation, after.TransactionID, after.Position, after.Digest}, placeOf(closing))
	if after.Position <= before.Position {
		f.Errorf("the end went from %d to %d", before.Position, after.Position)
	}
	adopted, err := f.Store.AdoptStream(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	same(f, "adopting what is one's own", adopted, []string{after.Incarnation})
}

// Shows: S1.5 S1.6
func readsSource(f *fixture) {
	position := f.appendRead(event{tenant: "acme", stream: "s", kind: "x", id: "a", metadata: `{"m":"1"}`, payload: []byte("p")})[0]
	row := one(f, f.Store.ReadSource, db.ReadSourceParams{Position: position, EventID: "a", Tenant: "acme"})
	same(f, "names", []string{row.Tenant, row.Stream, row.Type, row.EventID, row.Metadata, string(row.Payload)},
		[]string{"acme", "s", "x", "a", `{"m":"1"}`, "p"})
	for _, p := range []db.ReadSourceParams{
		{Position: position + 1, EventID: "a", Tenant: "acme"}, {Position: position, EventID: "b", Tenant: "acme"}, {Position: position, EventID: "a"},
	} {
		if rows := run(f, f.Store.ReadSource, p); len(rows) != 0 {
			f.Errorf("%+v found %+v", p, rows)
		}
	}
}

// purgeEvents purges what is older than an hour.
func (f *fixture) purgeEvents(force bool, maxRows int32) int64 {
	f.Helper()
	return one(f, f.Store.PurgeEvents, db.PurgeEventsParams{SchemaName: f.Store.Schema(), Keep: time.Hour.Microseconds(), Force: force, MaxRows: maxRows}).Removed
}

func retainsPrefix(f *fixture) {
	f.appendRead(named("a", "b", "c")...)
	_, closing := f.read(place{}, func(p *db.ReadEventsParams) { p.Examine = 1 })
	atA := placeOf(closing)
	_, closing = f.read(atA, func(p *db.ReadEventsParams) { p.Examine = 1 })
	atB := placeOf(closing)
	same(f, "young ones stay", f.purgeEvents(false, 10), int64(0))
	f.Age(f, 2*time.Hour)
	f.appendRead(named("d")...)
	same(f, "two at a time", f.purgeEvents(false, 2), int64(2))
	ids, closing := f.read(atA, nil)
	same(f, "a place whose successor is gone", []any{len(ids), closing.Standing}, []any{0, int16(db.StandingExpired)})
	ids, closing = f.read(atB, nil)
	same(f, "the place of the last that went", closing.Standing, int16(db.StandingGood))
	same(f, "and what follows it", ids, []string{"c", "d"})
	wrong := atB
	wrong.digest = digestOf("other")
	_, closing = f.read(wrong, nil)
	same(f, "another event at that place", closing.Standing, int16(db.StandingUnknown))
	same(f, "the last old one", f.purgeEvents(false, 10), int64(1))
	ids, closing = f.read(place{}, nil)
	same(f, "the oldest there is", ids, []string{"d"})
	f.Age(f, 2*time.Hour)
	same(f, "all", f.purgeEvents(false, 10), int64(1))
	_, empty := f.read(place{}, nil)
	same(f, "the end of an empty stream", placeOf(empty), placeOf(closing))
	ids, again := f.read(placeOf(empty), nil)
	same(f, "reading on from there", []any{len(ids), again.Standing}, []any{0, int16(db.StandingGood)})
}

func retainsForReader(f *fixture) {
	f.appendRead(named("a", "b", "c")...)
	_, closing := f.read(place{}, func(p *db.ReadEventsParams) { p.Examine = 2 })
	at := placeOf(closing)
	f.in(func(tx db.Tx) error {
		rows, err := f.Store.SaveReader(f.Context(), tx, db.SaveReaderParams{
			Name: "slow", Incarnation: at.incarnation, TransactionID: at.transaction, Position: at.position, Digest: at.digest,
		})
		if len(rows) != 1 || !rows[0].Saved {
			return errors.Join(err, errors.New("not saved"))
		}
		return err
	})
	f.Age(f, 2*time.Hour)
	same(f, "up to the reader", f.purgeEvents(false, 10), int64(2))
	same(f, "no further", f.purgeEvents(false, 10), int64(0))
	same(f, "forced", f.purgeEvents(true, 10), int64(1))
	_, closing = f.read(at, nil)
	same(f, "the reader's place", closing.Standing, int16(db.StandingExpired))
}

// purgeClaims purges what ended, or whose time ran out, more than an hour ago.
func (f *fixture) purgeClaims(after db.PurgeClaimsRow, all bool, maxRows int32) []db.PurgeClaimsRow {
	f.Helper()
	return run(f, f.Store.PurgeClaims, db.PurgeClaimsParams{
		SchemaName: f.Store.Schema(), Keep: time.Hour.Microseconds(), AfterAt: after.OverAt, AfterTenant: after.Tenant, AfterScope: after.Scope,
		AfterKey: after.Key, MaxRows: maxRows, AllTenants: all, Tenants: []string{""},
	})
}

// receipt records one.
func (f *fixture) receipt(tenant, scope, key string) {
	f.Helper()
	f.in(func(tx db.Tx) error {
		_, err := f.Store.RecordClaim(f.Context(), tx, db.RecordClaimParams{
			Tenant: tenant, Scope: scope, Key: key, Digest: digestOf("d"), State: db.ClaimCompleted,
		})
		return err
	})
}

func retainsClaims(f *fixture) {
	for i, tenant := range []string{"", "acme", ""} {
		f.receipt(tenant, "s", fmt.Sprint(i))
		f.Age(f, time.Second) // so that they ended in this order, whatever the clock's resolution
	}
	same(f, "young ones", len(f.purgeClaims(db.PurgeClaimsRow{}, true, 10)), 0)
	f.Age(f, 2*time.Hour)
	rows := f.purgeClaims(db.PurgeClaimsRow{}, false, 2)
	same(f, "of two, those of the tenant", []any{len(rows), rows[0].Removed}, []any{1, int64(1)})
	rows = f.purgeClaims(rows[0], false, 2)
	same(f, "and on from there", []any{len(rows), rows[0].Removed}, []any{1, int64(1)})
	same(f, "to the end", len(f.purgeClaims(rows[0], false, 2)), 0)
	same(f, "all tenants", f.purgeClaims(db.PurgeClaimsRow{}, true, 10)[0].Removed, int64(1))

	token := f.claim("held", "d")
	f.Age(f, time.Hour) // its minute ran out 59 minutes ago
	same(f, "one that may be taken over", len(f.purgeClaims(db.PurgeClaimsRow{}, true, 10)), 0)
	f.Age(f, time.Hour)
	same(f, "one that nobody took over", f.purgeClaims(db.PurgeClaimsRow{}, true, 10)[0].Removed, int64(1))
	same(f, "its holder's end", f.end("held", token, db.ClaimCompleted, "", ""), false)
	same(f, "left", len(f.dump().Claims), 0)
}

// A receipt goes with the message that it keeps from running a handler again: not while that is open, nor while it is dead and may be replayed.
func retainsReceipts(f *fixture) {
	of := func(event string) effect { return effect{key: "c:" + event + ":0"} }
	dead := f.bury(of("dead"))
	f.deliver(of("delivered"))
	f.park(of("parked"))
	f.cancel(f.enqueue(of("cancelled"))...)
	f.enqueue(of("open"))
	for _, event := range []string{"dead", "delivered", "parked", "cancelled", "open", "purged"} {
		f.receipt("", "c:h", event)
		f.receipt("", "other:h", event)
		f.receipt("acme", "c:h:i", event)
	}
	left := func() (keys []string) {
		for _, c := range f.dump().Claims {
			keys = append(keys, fmt.Sprintf("%s %s", c.Scope, c.Key))
		}
		slices.Sort(keys)
		return keys
	}
	f.Age(f, 2*time.Hour)
	f.purgeClaims(db.PurgeClaimsRow{}, true, 100)
	same(f, "left", left(), []string{"c:h dead", "c:h open", "c:h parked"})
	if rows := run(f, f.Store.ReplayDead, replaying(dead...)); len(rows) == 0 {
		f.Fatal("not replayed")
	}
	f.purgeClaims(db.PurgeClaimsRow{}, true, 100)
	same(f, "left after a replay", left(), []string{"c:h dead", "c:h open", "c:h parked"})
	f.cancel(dead...)
	f.purgeClaims(db.PurgeClaimsRow{}, true, 100)
	same(f, "left of what cannot be delivered any more", left(), []string{"c:h open", "c:h parked"})
}
