package dbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var appendTests = []test{
	{name: "stores what it is given", run: appendStores},
	{name: "positions rise in input order", run: appendRises},
	{name: "an id that exists is left alone and found", run: appendTwice},
	{name: "the same id of another tenant is another event", run: appendTenants},
	{name: "a concurrent winner is found", run: appendWinner, sideBySide: true},
	{name: "a rollback leaves nothing", run: appendRollback},
	{name: "bounds refuse what Go should have", run: appendChecks},
	{name: "a reader's place is kept by compare and set", run: savesReader},
}

// An event is what a test appends; zero fields get a type and a fresh id.
type event struct {
	tenant, stream, kind, id, metadata string
	payload, digest                    []byte
}

func (f *fixture) eventParams(events ...event) db.AppendEventsParams {
	var p db.AppendEventsParams
	for _, e := range events {
		if e.id == "" {
			e.id = fmt.Sprintf("event-%d", f.drawn.Add(1))
		}
		if e.digest == nil {
			e.digest = digestOf(e.id)
		}
		p.Tenants = append(p.Tenants, e.tenant)
		p.Streams = append(p.Streams, e.stream)
		p.Types = append(p.Types, or(e.kind, "happened"))
		p.EventIds = append(p.EventIds, e.id)
		p.Digests = append(p.Digests, e.digest)
		p.Metadatas = append(p.Metadatas, e.metadata)
		p.Payloads = append(p.Payloads, append([]byte{}, e.payload...))
	}
	return p
}

// append appends events that are all new, in a transaction that commits, and returns their positions.
func (f *fixture) append(events ...event) []int64 {
	f.Helper()
	tx, commit, _ := f.begin()
	rows, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(events...))
	if err := errors.Join(err, commit()); err != nil {
		f.Fatalf("append: %v", err)
	}
	if len(rows) != len(events) {
		f.Fatalf("append: %d rows for %d events", len(rows), len(events))
	}
	positions := make([]int64, len(rows))
	for i, row := range rows {
		if !row.Stored {
			f.Fatalf("append: event %d was not stored", i)
		}
		positions[i] = row.Position
	}
	return positions
}

// appendRead is append, and waits until the events can be read.
func (f *fixture) appendRead(events ...event) []int64 {
	f.Helper()
	positions := f.append(events...)
	f.settleStream(positions[len(positions)-1])
	return positions
}

// settleStream waits until a position is below the horizon, which transactions of the server's other databases hold back too.
func (f *fixture) settleStream(position int64) {
	f.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		rows, err := f.Store.ReadEnd(f.Context())
		if err != nil || len(rows) != 1 {
			f.Fatalf("the end: %+v, %v", rows, err)
		}
		if rows[0].Position >= position {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("position %d is still beyond the horizon", position)
		}
		time.Sleep(5 * time.Millisecond) // the server has other work
	}
}

// in runs a function in a transaction of the first handle, and commits.
func (f *fixture) in(do func(tx db.Tx) error) {
	f.Helper()
	tx, commit, _ := f.begin()
	if err := errors.Join(do(tx), commit()); err != nil {
		f.Fatal(err)
	}
}

func appendStores(f *fixture) {
	position := f.append(event{
		tenant: "acme", stream: "order-7", kind: "order.placed", id: "e-1", metadata: `{"by":"ann"}`, payload: []byte{0, 1, 0xff},
	})[0]
	stored := f.dump().Events
	same(f, "events", len(stored), 1)
	e := stored[0]
	same(f, "names", []string{e.Tenant, e.Stream, e.Type, e.EventID, e.Metadata}, []string{"acme", "order-7", "order.placed", "e-1", `{"by":"ann"}`})
	same(f, "position", e.Position, position)
	sameBytes(f, "payload", e.Payload, []byte{0, 1, 0xff})
	sameBytes(f, "digest", e.Digest, digestOf("e-1"))
}

func appendRises(f *fixture) {
	positions := f.append(event{id: "z"}, event{id: "a"}, event{id: "m"})
	if !slices.IsSorted(positions) {
		f.Errorf("positions %d do not rise", positions)
	}
}

func appendTwice(f *fixture) {
	position := f.append(event{id: "e-1"})[0]
	f.unchanged("appending an id again", func() {
		f.in(func(tx db.Tx) error {
			rows, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(event{id: "e-1", kind: "other"}))
			if err != nil || len(rows) != 1 || rows[0].Stored {
				f.Errorf("rows %+v, %v", rows, err)
			}
			found, err := f.Store.FindEvents(f.Context(), tx, db.FindEventsParams{
				Tenants: []string{"", "", ""}, EventIds: []string{"e-1", "none", "e-1"},
				Digests: [][]byte{digestOf("e-1"), digestOf("none"), digestOf("another")},
			})
			slices.SortFunc(found, func(a, b db.FindEventsRow) int { return int(a.Ordinal - b.Ordinal) })
			same(f, "found", found, []db.FindEventsRow{{Ordinal: 1, Position: position, SameDigest: true}, {Ordinal: 3, Position: position}})
			return err
		})
	})
	f.in(func(tx db.Tx) error { // of one id given twice the first is stored
		rows, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(event{id: "e-2"}, event{id: "e-2"}))
		if len(rows) != 2 || !rows[0].Stored || rows[1].Stored {
			f.Errorf("rows %+v", rows)
		}
		return err
	})
}

func appendTenants(f *fixture) {
	f.append(event{id: "e-1"}, event{id: "e-1", tenant: "acme"}, event{id: "e-1", tenant: "other"})
	same(f, "events", len(f.dump().Events), 3)
}

func appendWinner(f *fixture) {
	tx, commit, _ := f.begin()
	if _, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(event{id: "e-1"})); err != nil {
		f.Fatal(err)
	}
	late := make(chan []db.AppendEventsRow, 1)
	go func() {
		_ = f.Second.Transact(f.Context(), func(tx db.Tx) error {
			rows, err := f.Second.AppendEvents(f.Context(), tx, f.eventParams(event{id: "e-1"}))
			if err != nil {
				f.Error(err)
			}
			late <- rows
			return err
		})
	}()
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	if rows := <-late; len(rows) != 1 || rows[0].Stored {
		f.Errorf("the loser's rows: %+v", rows)
	}
}

func appendRollback(f *fixture) {
	tx, _, rollback := f.begin()
	if _, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(event{id: "e-1"})); err != nil {
		f.Fatal(err)
	}
	if err := rollback(); err != nil {
		f.Fatal(err)
	}
	same(f, "events", len(f.dump().Events), 0)
	f.append(event{id: "e-1"})
}

func appendChecks(f *fixture) {
	for name, bad := range map[string]event{
		"tenant": {tenant: " "}, "stream": {stream: "\t"}, "type": {kind: "*"}, "id": {id: " "}, "digest": {digest: []byte{1}},
		"long id": {id: fmt.Sprintf("%065d", 1)},
	} {
		tx, _, rollback := f.begin()
		if rows, err := f.Store.AppendEvents(f.Context(), tx, f.eventParams(bad)); err == nil {
			f.Errorf("%s: stored %+v", name, rows)
		}
		_ = rollback()
	}
	same(f, "events", len(f.dump().Events), 0)
}

// Shows: S1.40
func savesReader(f *fixture) {
	incarnation := one(f, func(ctx context.Context, _ struct{}) ([]db.ReadEndRow, error) { return f.Store.ReadEnd(ctx) }, struct{}{}).Incarnation
	saveIn := func(incarnation, name string, from, to int64) (saved db.SaveReaderRow) {
		f.Helper()
		f.in(func(tx db.Tx) error {
			rows, err := f.Store.SaveReader(f.Context(), tx, db.SaveReaderParams{
				Name: name, Incarnation: incarnation, TransactionID: to, Position: to, Digest: digestOf("x"), FromTransactionID: from, FromPosition: from,
			})
			if len(rows) == 1 {
				saved = rows[0]
			} else {
				err = errors.Join(err, fmt.Errorf("%d rows", len(rows)))
			}
			return err
		})
		return saved
	}
	save := func(name string, from, to int64) bool {
		f.Helper()
		row := saveIn(incarnation, name, from, to)
		same(f, "the incarnation is known", row.Known, true)
		return row.Saved
	}
	for _, step := range []struct {
		name     string
		from, to int64
		want     bool
	}{{"r", 3, 4, false}, {"r", 0, 4, true}, {"r", 0, 5, false}, {"r", 3, 5, false}, {"r", 4, 5, true}, {"s", 0, 9, true}} {
		if saved := save(step.name, step.from, step.to); saved != step.want {
			f.Errorf("%+v: saved %v", step, saved)
		}
	}
	other := fmt.Sprintf("%032x", 7)
	same(f, "a place of another incarnation", saveIn(other, "r", 5, 6), db.SaveReaderRow{})
	same(f, "a first place of another incarnation", saveIn(other, "t", 0, 6), db.SaveReaderRow{})
	all := run(f, f.Store.FindReaders, db.FindReadersParams{AllNames: true, Names: []string{}, MaxRows: 10})
	same(f, "readers", len(all), 2)
	same(f, "first reader", []any{all[0].Name, all[0].Position, all[0].TransactionID, all[0].Incarnation}, []any{"r", int64(5), int64(5), incarnation})
	after := run(f, f.Store.FindReaders, db.FindReadersParams{AllNames: true, Names: []string{}, AfterName: "r", MaxRows: 10})
	same(f, "readers after the first", len(after), 1)
	named := run(f, f.Store.FindReaders, db.FindReadersParams{Names: []string{"s", "nobody"}, MaxRows: 10})
	same(f, "readers named", len(named), 1)
	same(f, "removed", run(f, f.Store.RemoveReader, db.RemoveReaderParams{Name: "r"}), []string{"r"})
	same(f, "removed again", len(run(f, f.Store.RemoveReader, db.RemoveReaderParams{Name: "r"})), 0)
}
