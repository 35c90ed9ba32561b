package dbtest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Audit fails the test for each problem of the tables.
func Audit(t testing.TB, d Dump) {
	t.Helper()
	for _, problem := range Problems(d) {
		t.Error("audit: ", problem)
	}
}

// Problems says what in the tables must never be, whatever happened before: what the statements keep together without foreign keys.
func Problems(d Dump) []string {
	a := audit{
		now:         d.Now,
		messages:    map[int64]tables.Message{},
		queue:       map[int64]tables.Queue{},
		settlements: map[int64]tables.Settlement{},
		leases:      map[orderKey]tables.OrderLease{},
		replays:     map[int64]int32{},
	}
	for _, m := range d.Messages {
		a.messages[m.ID] = m
	}
	for _, q := range d.Queue {
		a.queue[q.MessageID] = q
	}
	for _, s := range d.Settlements {
		a.settlements[s.MessageID] = s
	}
	for _, o := range d.OrderLeases {
		a.leases[orderKey{o.Consumer, o.Target, o.Tenant, o.OrderKey}] = o
	}
	for _, act := range d.Audits {
		if act.Action == "replay" {
			a.replays[act.MessageID]++
		}
	}
	for _, m := range d.Messages {
		a.message(m)
	}
	for _, q := range d.Queue {
		a.open(q)
	}
	for _, s := range d.Settlements {
		a.settled(s)
	}
	for _, o := range d.OrderLeases {
		a.orderLease(o)
	}
	a.batches(d.Batches, d.BatchRows)
	return a.problems
}

// batches: a row is open as long as its message is, and agrees with its settlement; a batch is completed once it is sealed and has no open row.
func (a *audit) batches(batches []tables.Batch, rows []tables.BatchRow) {
	outcomes := map[int16]string{db.RowDelivered: "delivered", db.RowDead: "dead", db.RowCancelled: "cancelled", db.RowExpired: "expired"}
	open := map[int64]int{}
	for _, r := range rows {
		_, queued := a.queue[r.MessageID]
		if queued != (r.Fate == db.RowOpen) {
			a.problem("row %d of batch %d has fate %d, and its message is open: %t", r.Number, r.BatchID, r.Fate, queued)
		}
		if s, settled := a.settlements[r.MessageID]; settled && s.Outcome != outcomes[r.Fate] {
			a.problem("row %d of batch %d has fate %d, and its message is %s", r.Number, r.BatchID, r.Fate, s.Outcome)
		}
		if r.Fate == db.RowOpen {
			open[r.BatchID]++
		}
	}
	for _, b := range batches {
		completed := !b.CompletedAt.Equal(tables.Forever)
		if sealed := !b.SealedAt.Equal(tables.Forever); completed != (sealed && open[b.ID] == 0) {
			a.problem("batch %d is sealed: %t, completed: %t, and has %d open rows", b.ID, sealed, completed, open[b.ID])
		}
	}
}

type orderKey struct{ consumer, target, tenant, key string }

type audit struct {
	now         time.Time
	messages    map[int64]tables.Message
	queue       map[int64]tables.Queue
	settlements map[int64]tables.Settlement
	leases      map[orderKey]tables.OrderLease
	replays     map[int64]int32 // by the audit table
	problems    []string
}

func (a *audit) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

func (a *audit) message(m tables.Message) {
	_, open := a.queue[m.ID]
	_, settled := a.settlements[m.ID]
	switch {
	case open && settled:
		a.problem("message %d is open and settled", m.ID)
	case !open && !settled:
		a.problem("message %d is neither open nor settled", m.ID)
	}
}

func (a *audit) open(q tables.Queue) {
	m, ok := a.messages[q.MessageID]
	copied := tables.Queue{Consumer: q.Consumer, Target: q.Target, Kind: q.Kind, Tenant: q.Tenant, OrderKey: q.OrderKey, Priority: q.Priority}
	lane := tables.Queue{Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, Tenant: m.Tenant, OrderKey: m.OrderKey, Priority: m.Priority}
	free := bytes.Equal(q.Token, db.FreeToken)
	switch {
	case !ok:
		a.problem("queue row %d has no message", q.MessageID)
	case fmt.Sprint(copied) != fmt.Sprint(lane):
		a.problem("message %d is queued in another lane than its own", q.MessageID)
	}
	if free != q.LeasedUntil.Equal(db.Never) {
		a.problem("message %d has a token or a lease, but not both", q.MessageID)
	}
	if free && q.LeasedBy != 0 {
		a.problem("message %d is free but leased by %d", q.MessageID, q.LeasedBy)
	}
	if !free && q.State == tables.Parked {
		a.problem("message %d is parked and leased", q.MessageID)
	}
	if q.BornAt.After(q.ExpiresAt) || q.DueAt.Before(q.BornAt) {
		a.problem("message %d is due %v, born %v, expires %v", q.MessageID, q.DueAt, q.BornAt, q.ExpiresAt)
	}
	if q.Replays != a.replays[q.MessageID] {
		a.problem("message %d counts %d replays, the audit table %d", q.MessageID, q.Replays, a.replays[q.MessageID])
	}
	if q.OrderKey != "" && !free && q.LeasedUntil.After(a.now) {
		o := a.leases[orderKey{q.Consumer, q.Target, q.Tenant, q.OrderKey}]
		if o.MessageID != q.MessageID || o.Blocked {
			a.problem("message %d has a live lease without that of its order key", q.MessageID)
		}
	}
}

func (a *audit) settled(s tables.Settlement) {
	if _, ok := a.messages[s.MessageID]; !ok {
		a.problem("settlement %d has no message", s.MessageID)
	}
	if s.Replays != a.replays[s.MessageID] {
		a.problem("message %d counts %d replays, the audit table %d", s.MessageID, s.Replays, a.replays[s.MessageID])
	}
	if s.Epoch < int64(s.Attempt) {
		a.problem("message %d settled at attempt %d of epoch %d", s.MessageID, s.Attempt, s.Epoch)
	}
}

// orderLease: a live or lost one belongs to a leased message, both ending at one instant; a blocked one to a dead message.
func (a *audit) orderLease(o tables.OrderLease) {
	m := a.messages[o.MessageID]
	if (orderKey{m.Consumer, m.Target, m.Tenant, m.OrderKey}) != (orderKey{o.Consumer, o.Target, o.Tenant, o.OrderKey}) {
		a.problem("the order lease of %q belongs to message %d, which is not of that key", o.OrderKey, o.MessageID)
	}
	if o.Blocked {
		if a.settlements[o.MessageID].Outcome != "dead" || !o.LeasedUntil.Equal(db.Never) {
			a.problem("order key %q is blocked by message %d, which is not dead", o.OrderKey, o.MessageID)
		}
		return
	}
	if q, open := a.queue[o.MessageID]; !open || !q.LeasedUntil.Equal(o.LeasedUntil) {
		a.problem("the order lease of %q until %v is not that of message %d", o.OrderKey, o.LeasedUntil, o.MessageID)
	}
}
