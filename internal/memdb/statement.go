package memdb

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// A table keeps rows by their primary key.
type table[K comparable, R any] struct {
	name   string
	checks []check[R]
	key    func(R) K
	rows   map[K]R
}

func newTable[K comparable, R any](name string, checks []check[R], key func(R) K) table[K, R] {
	return table[K, R]{name: name, checks: checks, key: key, rows: map[K]R{}}
}

// put inserts the row or replaces the one of its key.
func (t *table[K, R]) put(st *statement, row R) {
	st.fail(verify(t.name, t.checks, row))
	key := t.key(row)
	t.remember(st, key)
	t.rows[key] = row
}

func (t *table[K, R]) remove(st *statement, key K) {
	t.remember(st, key)
	delete(t.rows, key)
}

func (t *table[K, R]) remember(st *statement, key K) {
	old, had := t.rows[key]
	st.undo = append(st.undo, func() {
		if had {
			t.rows[key] = old
		} else {
			delete(t.rows, key)
		}
	})
}

// sorted returns the rows in the given order.
func (t *table[K, R]) sorted(compare func(a, b R) int) []R {
	return slices.SortedFunc(maps.Values(t.rows), compare)
}

// A statement is one operation at work. Its first error stays, and the rows it changed are put back at the end.
type statement struct {
	*Store
	now  time.Time
	undo []func()
	err  error
}

func (st *statement) fail(err error) {
	if st.err == nil {
		st.err = err
	}
}

func (st *statement) rollback() {
	for _, undo := range slices.Backward(st.undo) {
		undo()
	}
}

var errLengths = errors.New("memdb: arrays of one call differ in length")

// parallel says whether the arrays of a call have one length, and fails the statement otherwise.
func (st *statement) parallel(lengths ...int) bool {
	if slices.Min(lengths) != slices.Max(lengths) {
		st.fail(errLengths)
		return false
	}
	return true
}

// over says whether a lease has ended. One further ahead than the longest lease counts as over: the clock stepped back.
func (st *statement) over(until time.Time, longestLease int64) bool {
	return !until.After(st.now) || until.After(after(st.now, longestLease))
}

// expiry is the instant from which the message is too old, a maxAge of 0 being none.
func expiry(q tables.Queue, maxAge int64) time.Time {
	if maxAge == 0 {
		return q.ExpiresAt
	}
	return earlier(q.ExpiresAt, after(q.BornAt, maxAge))
}

// expires gives the stored expiry of a message born at the instant.
func expires(born time.Time, maxAge int64) time.Time {
	if maxAge == 0 {
		return tables.Forever
	}
	return earlier(after(born, maxAge), tables.Forever)
}

// stateOf is the word for the state of an open message.
func (st *statement) stateOf(q tables.Queue) string {
	switch {
	case q.State == tables.Parked:
		return "parked"
	case q.LeasedUntil.After(st.now):
		return "leased"
	default:
		return "pending"
	}
}

func held(q tables.Queue) bool { return !bytes.Equal(q.Token, db.FreeToken) }

// freed is the queue row without its lease.
func freed(q tables.Queue) tables.Queue {
	q.Token, q.LeasedUntil, q.LeasedBy = db.FreeToken, db.Never, 0
	return q
}

// settle moves a message from the queue to its settlement, which the outcome completes.
func (st *statement) settle(q tables.Queue, outcome tables.Settlement) {
	st.queue.remove(st, q.MessageID)
	outcome.MessageID, outcome.Attempt, outcome.Epoch = q.MessageID, q.Attempt, q.Epoch
	outcome.Replays, outcome.ReplayedAt, outcome.SettledAt = q.Replays, q.ReplayedAt, st.now
	st.settlements.put(st, outcome)
	st.ended(q.MessageID)
}

// audit records what an operator did; messageID 0 = not about one message.
func (st *statement) audit(action string, messageID int64, tenant, actor, reason, detail string) {
	st.lastAudit++ // never taken back, as an identity
	st.audits.put(st, tables.Audit{
		ID: st.lastAudit, MessageID: messageID, At: st.now, Action: action, Tenant: tenant, Actor: actor, Reason: reason, Detail: detail,
	})
}

// An orderKey is the primary key of an order lease.
type orderKey struct{ consumer, target, tenant, key string }

func keyOfLease(o tables.OrderLease) orderKey {
	return orderKey{o.Consumer, o.Target, o.Tenant, o.OrderKey}
}

func keyOf(q tables.Queue) orderKey { return orderKey{q.Consumer, q.Target, q.Tenant, q.OrderKey} }

func leaseOf(q tables.Queue, until time.Time, blocked bool) tables.OrderLease {
	return tables.OrderLease{
		MessageID: q.MessageID, LeasedUntil: until, Blocked: blocked,
		Consumer: q.Consumer, Target: q.Target, Tenant: q.Tenant, OrderKey: q.OrderKey,
	}
}

// orderLease returns the order lease that the message itself has, blocked or not.
func (st *statement) orderLease(q tables.Queue) (tables.OrderLease, bool) {
	o, ok := st.orderLeases.rows[keyOf(q)]
	return o, ok && o.MessageID == q.MessageID
}

// endOrder frees the order key of a message whose lease ends, or blocks it.
func (st *statement) endOrder(q tables.Queue, block bool) {
	switch o, ok := st.orderLease(q); {
	case !ok || o.Blocked:
	case block:
		st.orderLeases.put(st, leaseOf(q, db.Never, true))
	default:
		st.orderLeases.remove(st, keyOf(q))
	}
}

// unblock frees the order key that a dead message blocks.
func (st *statement) unblock(q tables.Queue) {
	if o, ok := st.orderLease(q); ok && o.Blocked {
		st.orderLeases.remove(st, keyOf(q))
	}
}

// A laneName is the primary key of a pause; each name may be the wildcard.
type laneName struct{ consumer, target, kind, tenant string }

func laneOfPause(p tables.Pause) laneName { return laneName{p.Consumer, p.Target, p.Kind, p.Tenant} }

// pauseMode is the strongest mode of the pauses on a lane, -1 when there is none.
func (st *statement) pauseMode(lane laneName) int32 {
	mode := int32(-1)
	for _, p := range st.pauses.rows {
		if among(p.Consumer, lane.consumer) && among(p.Target, lane.target) && among(p.Kind, lane.kind) && among(p.Tenant, lane.tenant) {
			mode = max(mode, int32(p.Mode))
		}
	}
	return mode
}

func among(name, wanted string) bool { return name == wanted || name == "*" }

// matches is for filters, of which an empty one matches all.
func matches(filter, value string) bool { return filter == "" || filter == value }

func inScope(allTenants bool, scope []string, tenant string) bool {
	return allTenants || slices.Contains(scope, tenant)
}

// openAbove yields at most limit open messages above the id, in id order.
func (st *statement) openAbove(id int64, limit int32) []tables.Queue {
	rows := slices.SortedFunc(where(maps.Values(st.queue.rows), func(q tables.Queue) bool { return q.MessageID > id }), byMessage)
	return first(rows, limit)
}

func first[R any](rows []R, limit int32) []R { return rows[:min(len(rows), max(int(limit), 0))] }

func byMessage(a, b tables.Queue) int { return cmp.Compare(a.MessageID, b.MessageID) }

func where[R any](rows iter.Seq[R], wanted func(R) bool) iter.Seq[R] {
	return func(yield func(R) bool) {
		for row := range rows {
			if wanted(row) && !yield(row) {
				return
			}
		}
	}
}
