package dbtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// A fixture is a test with its harness. Its helpers stop the test at the first error that the test did not ask for.
type fixture struct {
	*testing.T
	Harness
	drawn atomic.Int64 // keys and tokens
}

// An effect is what a test enqueues; zero fields get a lane ("c", "t", "k", "") and a fresh key.
type effect struct {
	tenant, consumer, target, kind, key, order string
	priority                                   int16
	payload, digest                            []byte
	metadata                                   string
	position                                   int64
	event                                      string
	maxAge, delay                              time.Duration
	due                                        time.Time
}

// params spreads effects over the arrays of an enqueue.
func (f *fixture) params(effects ...effect) db.EnqueueParams {
	var p db.EnqueueParams
	for _, e := range effects {
		if e.key == "" {
			e.key = fmt.Sprintf("key-%d", f.drawn.Add(1))
		}
		if e.digest == nil {
			e.digest = digestOf(e.key)
		}
		p.Tenants = append(p.Tenants, e.tenant)
		p.Consumers = append(p.Consumers, or(e.consumer, "c"))
		p.Targets = append(p.Targets, or(e.target, "t"))
		p.Kinds = append(p.Kinds, or(e.kind, "k"))
		p.Keys = append(p.Keys, e.key)
		p.OrderKeys = append(p.OrderKeys, e.order)
		p.Priorities = append(p.Priorities, e.priority)
		p.Digests = append(p.Digests, e.digest)
		p.Metadatas = append(p.Metadatas, e.metadata)
		p.Payloads = append(p.Payloads, append([]byte{}, e.payload...)) // nil is the caller's to turn into empty
		p.SourcePositions = append(p.SourcePositions, e.position)
		p.SourceEventIds = append(p.SourceEventIds, e.event)
		p.MaxAges = append(p.MaxAges, e.maxAge.Microseconds())
		p.DueAts = append(p.DueAts, e.due)
		p.Delays = append(p.Delays, e.delay.Microseconds())
	}
	return p
}

// digestOf is the digest of an effect that is given none.
func digestOf(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// begin opens a caller's transaction. A test that stops half-way leaves none open.
func (f *fixture) begin() (tx db.Tx, commit, rollback func() error) {
	f.Helper()
	tx, commit, rollback = f.Begin(f)
	f.Cleanup(func() { _ = rollback() })
	return tx, commit, rollback
}

// record enqueues in a transaction that commits, and returns the answer.
func (f *fixture) record(effects ...effect) []db.EnqueueRow {
	f.Helper()
	tx, commit, _ := f.begin()
	rows, err := f.Store.Enqueue(f.Context(), tx, f.params(effects...))
	if err := errors.Join(err, commit()); err != nil {
		f.Fatalf("enqueue: %v", err)
	}
	return rows
}

// enqueue records effects that are all new and returns their ids.
func (f *fixture) enqueue(effects ...effect) []int64 {
	f.Helper()
	ids := make([]int64, 0, len(effects))
	for i, row := range f.record(effects...) {
		if !row.Stored {
			f.Fatalf("enqueue: effect %d was not stored", i)
		}
		ids = append(ids, row.ID)
	}
	return ids
}

// some is n plain effects.
func some(n int) []effect { return make([]effect, n) }

// run runs an operation of the store and returns its rows.
func run[P, R any](f *fixture, operation func(context.Context, P) ([]R, error), arg P) []R {
	f.Helper()
	rows, err := operation(f.Context(), arg)
	if err != nil {
		f.Fatalf("%T: %v", arg, err)
	}
	return rows
}

// one is run for an operation that must return one row.
func one[P, R any](f *fixture, operation func(context.Context, P) ([]R, error), arg P) R {
	f.Helper()
	rows := run(f, operation, arg)
	if len(rows) != 1 {
		f.Fatalf("%T: %d rows, want 1: %+v", arg, len(rows), rows)
	}
	return rows[0]
}

// token draws a fresh token of bytes of every kind.
func (f *fixture) token() []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(f.drawn.Add(1))))
	return sum[:16]
}

// dump reads the tables, each row's bytes and instants in the one form that compares.
func (f *fixture) dump() Dump {
	f.Helper()
	return f.Dump(f)
}

// queued returns the queue row of an open message.
func (f *fixture) queued(id int64) tables.Queue {
	f.Helper()
	for _, q := range f.dump().Queue {
		if q.MessageID == id {
			return q
		}
	}
	f.Fatalf("message %d is not open", id)
	panic("unreachable")
}

// settled returns the settlement of a message.
func (f *fixture) settled(id int64) tables.Settlement {
	f.Helper()
	for _, r := range f.dump().Settlements {
		if r.MessageID == id {
			return r
		}
	}
	f.Fatalf("message %d is not settled", id)
	panic("unreachable")
}

// fate says where a message stands, "" for one that is gone.
func (f *fixture) fate(id int64) string {
	f.Helper()
	for _, row := range run(f, f.Store.FindFates, db.FindFatesParams{Ids: []int64{id}, AllTenants: true}) {
		return row.State
	}
	return ""
}

// fates checks where messages stand.
func (f *fixture) fates(want string, ids ...int64) {
	f.Helper()
	for _, id := range ids {
		if got := f.fate(id); got != want {
			f.Errorf("message %d is %q, want %q", id, got, want)
		}
	}
}

// same checks a value.
func same[V any](f *fixture, what string, got, want V) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// sameIDs checks a set of ids; statements promise no order of their rows but where they say so.
func sameIDs(f *fixture, what string, got []int64, want ...int64) {
	f.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		f.Errorf("%s: %d, want %d", what, got, want)
	}
}

// sameInstant checks a time, in whatever location it came.
func sameInstant(f *fixture, what string, got, want time.Time) {
	f.Helper()
	if !got.Equal(want) {
		f.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sameBytes checks bytes; none and empty ones are the same.
func sameBytes(f *fixture, what string, got, want []byte) {
	f.Helper()
	if !bytes.Equal(got, want) {
		f.Errorf("%s: %x, want %x", what, got, want)
	}
}

// unchanged checks that nothing is stored or removed by what do does.
func (f *fixture) unchanged(what string, do func()) {
	f.Helper()
	before := f.dump()
	do()
	for _, change := range changes(before, f.dump()) {
		f.Errorf("%s changed %s", what, change)
	}
}

// changes says how two dumps differ, row by row.
func changes(before, after Dump) []string {
	var all []string
	old, now := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range old.NumField() {
		table, rows := old.Type().Field(i).Name, map[string]int{}
		if table == "Now" {
			continue
		}
		for _, row := range old.Field(i).Seq2() {
			rows[fmt.Sprintf("%+v", row)]--
		}
		for _, row := range now.Field(i).Seq2() {
			rows[fmt.Sprintf("%+v", row)]++
		}
		for row, change := range rows {
			if change != 0 {
				all = append(all, fmt.Sprintf("%s: %+d %s", table, change, row))
			}
		}
	}
	slices.Sort(all)
	return all
}
