package dbtest

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var enqueueTests = []test{
	{name: "ids rise in input order", run: idsRise},
	{name: "stores what it is given", run: storesGiven},
	{name: "a key is stored once", run: keyOnce},
	{name: "of one key given twice the first is stored", run: keyTwice},
	{name: "keys of other tenants and consumers are others", run: keysElsewhere},
	{name: "a rollback leaves nothing", run: rollbackLeavesNothing},
	{name: "nothing is seen before the commit", run: unseenBeforeCommit, sideBySide: true},
	{name: "a concurrent winner is reported", run: concurrentWinner, sideBySide: true},
	{name: "a concurrent loser leaves the key free", run: concurrentLoser, sideBySide: true},
	{name: "overlapping batches do not deadlock", run: overlappingBatches, sideBySide: true},
	{name: "due at once", run: dueAtOnce},
	{name: "due later", run: dueLater},
	{name: "expires by its age", run: expiresByAge},
	{name: "refuses a foreign transaction", run: foreignTx},
}

func idsRise(f *fixture) {
	var last int64
	for _, row := range f.record(effect{key: "c"}, effect{key: "a"}, effect{key: "b"}) {
		if !row.Stored || row.ID <= last {
			f.Errorf("%+v after %d", row, last)
		}
		last = row.ID
	}
}

func storesGiven(f *fixture) {
	digest := slices.Repeat([]byte{0xd1}, 32)
	id := f.enqueue(effect{
		tenant: "acme", consumer: "wallets", target: "ledger", kind: "charge", key: "order-1", order: "account-7", priority: -3,
		payload: []byte(`{"amount": 5}`), digest: digest, metadata: `{"a":"b"}`, position: 42, event: "evt_1", maxAge: time.Hour,
	})[0]
	d := f.dump()
	m, q := d.Messages[0], d.Queue[0]
	same(f, "message", m, tables.Message{
		ID: id, SourcePosition: 42, MaxAge: time.Hour.Microseconds(), CreatedAt: m.CreatedAt, Priority: -3, Tenant: "acme", Consumer: "wallets",
		Target: "ledger", Kind: "charge", Key: "order-1", OrderKey: "account-7", SourceEventID: "evt_1", Digest: digest, Metadata: `{"a":"b"}`,
		Payload: []byte(`{"amount": 5}`),
	})
	same(f, "queue row", q, tables.Queue{
		MessageID: id, DueAt: m.CreatedAt, BornAt: m.CreatedAt, ExpiresAt: m.CreatedAt.Add(time.Hour), LeasedUntil: db.Never, ReplayedAt: db.Never,
		Priority: -3, Token: db.FreeToken, Consumer: "wallets", Target: "ledger", Kind: "charge", Tenant: "acme", OrderKey: "account-7",
	})
}

func keyOnce(f *fixture) {
	id := f.enqueue(effect{key: "a"})[0]
	f.unchanged("a duplicate", func() {
		if row := f.record(effect{key: "a", payload: []byte("other")})[0]; row.Stored || row.ID == id {
			f.Errorf("answered %+v, the message is %d", row, id)
		}
	})
}

func keyTwice(f *fixture) {
	rows := f.record(effect{key: "b", payload: []byte("first")}, effect{key: "a"}, effect{key: "b", payload: []byte("second")})
	same(f, "stored", []bool{rows[0].Stored, rows[1].Stored, rows[2].Stored}, []bool{true, true, false})
	sameBytes(f, "payload", f.dump().Messages[0].Payload, []byte("first"))
}

// Shows: S4.29
func keysElsewhere(f *fixture) {
	f.enqueue(effect{key: "a"}, effect{key: "a", tenant: "acme"}, effect{key: "a", consumer: "other"}, effect{key: "A"}, effect{key: "a "})
	if row := f.record(effect{key: "a", target: "elsewhere", kind: "other"})[0]; row.Stored {
		f.Error("target and kind are no part of the identity")
	}
}

func rollbackLeavesNothing(f *fixture) {
	var burnt int64
	f.unchanged("a rollback", func() {
		tx, _, rollback := f.begin()
		rows, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{key: "a"}))
		if err := errors.Join(err, rollback()); err != nil {
			f.Fatal(err)
		}
		burnt = rows[0].ID
	})
	if id := f.enqueue(effect{key: "a"})[0]; id <= burnt && !f.OneWriter {
		f.Errorf("id %d after %d was burnt", id, burnt)
	}
}

func unseenBeforeCommit(f *fixture) {
	tx, commit, _ := f.begin()
	rows, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{}))
	if err != nil {
		f.Fatal(err)
	}
	leased, _ := f.leaseDue(f.leasing())
	sameIDs(f, "leased before the commit", granted(leased))
	f.fates("", rows[0].ID)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	sameIDs(f, "leased after it", f.take(f.leasing()).ids, rows[0].ID)
}

// Shows: S4.13
func concurrentWinner(f *fixture) {
	winner, commit, _ := f.begin()
	won, err := f.Store.Enqueue(f.Context(), winner, f.params(effect{key: "a"}))
	if err != nil {
		f.Fatal(err)
	}
	committed := make(chan error)
	loser, _, rollback := f.begin()
	go func() { committed <- commit() }()
	lost, err := f.Store.Enqueue(f.Context(), loser, f.params(effect{key: "a"}))
	if err := errors.Join(err, <-committed); err != nil {
		f.Fatal(err)
	}
	found, err := f.Store.FindKeys(f.Context(), loser, asking("a"))
	if err := errors.Join(err, rollback()); err != nil {
		f.Fatal(err)
	}
	if lost[0].Stored || len(found) != 1 || found[0].ID != won[0].ID {
		f.Errorf("the loser stored %+v and found %+v, the winner stored %+v", lost, found, won)
	}
}

func concurrentLoser(f *fixture) {
	loser, _, rollback := f.begin()
	if _, err := f.Store.Enqueue(f.Context(), loser, f.params(effect{key: "a"})); err != nil {
		f.Fatal(err)
	}
	gone := make(chan error)
	winner, commit, _ := f.begin()
	go func() { gone <- rollback() }()
	rows, err := f.Store.Enqueue(f.Context(), winner, f.params(effect{key: "a"}))
	if err := errors.Join(err, commit(), <-gone); err != nil {
		f.Fatal(err)
	}
	same(f, "stored", rows[0].Stored, true)
	f.fates("pending", rows[0].ID)
}

func overlappingBatches(f *fixture) {
	var keys []effect
	for i := range 50 {
		keys = append(keys, effect{key: string(rune('0' + i))})
	}
	backwards := slices.Clone(keys)
	slices.Reverse(backwards)
	done := make(chan error)
	for _, batch := range [][]effect{keys, backwards, keys, backwards} {
		tx, commit, _ := f.begin()
		go func() {
			_, err := f.Store.Enqueue(f.Context(), tx, f.params(batch...))
			done <- errors.Join(err, commit())
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			f.Error(err)
		}
	}
	same(f, "messages", len(f.dump().Messages), len(keys))
}

func dueAtOnce(f *fixture) {
	f.enqueue(effect{}, effect{due: time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)})
	d := f.dump()
	for i, q := range d.Queue {
		sameInstant(f, "due", q.DueAt, d.Messages[i].CreatedAt)
		sameInstant(f, "born", q.BornAt, d.Messages[i].CreatedAt)
	}
}

func dueLater(f *fixture) {
	east := time.FixedZone("", 5*3600)
	due := time.Date(2040, 1, 2, 3, 4, 5, 678901000, east)
	f.enqueue(effect{due: due, maxAge: time.Hour}, effect{delay: time.Minute}, effect{due: due, delay: time.Minute},
		effect{due: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), delay: time.Microsecond})
	d := f.dump()
	for i, want := range []time.Time{due, d.Messages[1].CreatedAt.Add(time.Minute), due, d.Messages[3].CreatedAt.Add(time.Microsecond)} {
		sameInstant(f, "due", d.Queue[i].DueAt, want)
		sameInstant(f, "born", d.Queue[i].BornAt, want)
	}
	sameInstant(f, "expires", d.Queue[0].ExpiresAt, due.Add(time.Hour))
	rows, _ := f.leaseDue(f.leasing())
	for _, id := range granted(rows) {
		if id != d.Messages[3].ID {
			f.Errorf("message %d was leased before it is due", id)
		}
	}
}

func expiresByAge(f *fixture) {
	f.enqueue(effect{}, effect{maxAge: time.Microsecond}, effect{maxAge: 24 * time.Hour},
		effect{due: time.Date(9999, 12, 1, 0, 0, 0, 0, time.UTC), maxAge: 90 * 24 * time.Hour})
	d := f.dump()
	born := func(i int) time.Time { return d.Queue[i].BornAt }
	for i, want := range []time.Time{tables.Forever, born(1).Add(time.Microsecond), born(2).Add(24 * time.Hour), tables.Forever} {
		sameInstant(f, "expires", d.Queue[i].ExpiresAt, want)
	}
	p := f.params(effect{})
	p.Delays[0] = math.MaxInt64
	f.refuses("a due time beyond every calendar", p)
}

func foreignTx(f *fixture) {
	for name, tx := range map[string]db.Tx{"nil": nil, "another library's": foreign{}} {
		if _, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{})); !errors.Is(err, db.ErrForeignTx) {
			f.Errorf("%s: enqueue gave %v", name, err)
		}
		if _, err := f.Store.FindKeys(f.Context(), tx, db.FindKeysParams{}); !errors.Is(err, db.ErrForeignTx) {
			f.Errorf("%s: find gave %v", name, err)
		}
	}
	same(f, "messages", len(f.dump().Messages), 0)
}

type foreign struct{}

func (foreign) FencepostTx() {}
