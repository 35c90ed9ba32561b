package property_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/internal/tables"
	"github.com/fencepost-go/fencepost/outbox"
)

// sync holds every row of the store against the model. A row that the model left alone must be exactly as it was. In one that a step
// changed, the instants that the step set lie between the look before it and this one, and the model takes them over to the microsecond, so
// that what follows is compared exactly again.
func (m *machine) sync() {
	d := m.stage.dump(m.t)
	m.messages(d)
	m.openAndSettled(d)
	m.orderLeases(d)
	m.pauses(d)
	m.audits(d)
	m.workersSeen(d)
	m.unwritten()
	m.conserved(d)
	if !m.stepped { // a step back of the clock leaves leases that count as over and are not
		for _, problem := range dbtest.Problems(d) {
			m.rt.Errorf("audit: %s", problem)
		}
	}
	m.model.now = m.virtual(d.Now)
	m.seen.now, m.seen.rows = d.Now, slices.Clone(m.model.rows)
	m.acts, m.renewing, m.aged = nil, false, false
	clear(m.claims)
	clear(m.fresh)
}

// messages: the envelopes are what the producers wrote, and stay so byte for byte (I1, I17).
func (m *machine) messages(d tables.Dump) {
	equal(m, "number of messages", len(d.Messages), len(m.model.rows))
	seen := map[int64]tables.Message{}
	for i, got := range d.Messages {
		r := &m.model.rows[i]
		equal(m, "id of a message", got.ID, r.id)
		created := m.virtual(got.CreatedAt)
		got.CreatedAt = time.Time{}
		seen[got.ID] = got
		if before, ok := m.seen.messages[got.ID]; ok {
			equal(m, "creation", created, r.created)
			if !reflect.DeepEqual(before, got) {
				m.rt.Fatalf("message %d was %+v and is %+v", got.ID, before, got)
			}
			continue
		}
		m.took(d, r, "created", &r.created, created)
		e := m.effects[got.ID]
		equal(m, "lane", lane{got.Consumer, got.Target, got.Kind, got.Tenant, got.Priority}, r.lane)
		equal(m, "key", got.Key, e.Key)
		equal(m, "order key", got.OrderKey, e.OrderKey)
		equal(m, "payload", string(got.Payload), string(e.Payload))
		equal(m, "longest age", instant(got.MaxAge), r.maxAge)
		var metadata map[string]string
		if got.Metadata != "" {
			m.must(json.Unmarshal([]byte(got.Metadata), &metadata))
		}
		equal(m, "metadata", content(outbox.Effect{Metadata: metadata}), content(outbox.Effect{Metadata: e.Metadata}))
	}
	m.seen.messages = seen
}

// openAndSettled: a message has a queue row or a settlement, never both, and that is as the model's.
func (m *machine) openAndSettled(d tables.Dump) {
	equal(m, "number of open and settled messages", len(d.Queue)+len(d.Settlements), len(m.model.rows))
	before := m.before()
	for _, q := range d.Queue {
		m.compare(d, q.MessageID, before, func(r *row) row {
			return row{
				envelope: r.envelope, state: map[int16]state{tables.Pending: pending, tables.Parked: parked}[q.State],
				epoch: q.Epoch, token: m.numberOf(q.Token, r.token), worker: q.LeasedBy,
				attempt: int(q.Attempt), limit: int(q.AttemptLimit), replays: int(q.Replays), unsure: q.Unsure,
				due: m.virtual(q.DueAt), born: m.virtual(q.BornAt), expires: m.virtual(q.ExpiresAt), until: m.virtual(q.LeasedUntil),
				replayed: m.virtual(q.ReplayedAt), lastError: q.LastError,
			}
		})
		if until, ok := m.claims[q.MessageID]; ok {
			equal(m, "end of a lease, as the call told it", m.virtual(until), m.virtual(q.LeasedUntil))
		}
	}
	outcomes := map[string]state{"delivered": delivered, "dead": dead, "cancelled": cancelled, "expired": expired}
	for _, s := range d.Settlements {
		m.compare(d, s.MessageID, before, func(r *row) row {
			if r.reason == "" && s.Cause != "" {
				r.reason = m.written(s.Reason) // in the library's words
			}
			return row{
				envelope: r.envelope, state: outcomes[s.Outcome], epoch: s.Epoch, attempt: int(s.Attempt), replays: int(s.Replays),
				until: never, replayed: m.virtual(s.ReplayedAt), settled: m.virtual(s.SettledAt), settledBy: s.SettledBy,
				cause: s.Cause, reason: s.Reason, result: s.Result,
			}
		})
	}
}

// before are the model's rows as the last sync left them.
func (m *machine) before() map[int64]row {
	before := map[int64]row{}
	for _, r := range m.seen.rows {
		before[r.id] = r
	}
	return before
}

func (m *machine) compare(d tables.Dump, id int64, before map[int64]row, observe func(*row) row) {
	r := m.model.find(id)
	if r == nil {
		m.rt.Fatalf("message %d has a row and should not", id)
	}
	got := observe(r)
	if *r != before[id] {
		m.took(d, r, "due", &r.due, got.due)
		m.took(d, r, "born", &r.born, got.born)
		m.took(d, r, "expires", &r.expires, got.expires)
		m.took(d, r, "until", &r.until, got.until)
		m.took(d, r, "replayed", &r.replayed, got.replayed)
		m.took(d, r, "settled", &r.settled, got.settled)
	}
	if *r != got {
		m.rt.Fatalf("message %d differs: %s", id, differing(got, *r))
	}
}

// differing names the fields in which two rows differ.
func differing(got, want row) string {
	var fields []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if one, other := fmt.Sprint(g.Field(i)), fmt.Sprint(w.Field(i)); one != other {
			fields = append(fields, fmt.Sprintf("%s is %s in the store and %s in the model", g.Type().Field(i).Name, one, other))
		}
	}
	return strings.Join(fields, "; ")
}

// took takes an instant over that may lie as much later than the model's as time has passed since the store was last looked at.
func (m *machine) took(d tables.Dump, r *row, what string, have *instant, got instant) {
	since := m.seen.now
	if at, ok := m.fresh[r.id]; ok {
		since = at // written by a transaction that took its time
	}
	if got < *have || got > *have+instant(d.Now.Sub(since)/time.Microsecond) {
		m.rt.Fatalf("message %d: %s is %d, not %d", r.id, what, got, *have)
	}
	*have = got
}

// written looks at a text that the library made: storable, not blank, and within the bound (I26).
func (m *machine) written(reason string) string {
	if !utf8.ValidString(reason) || strings.Contains(reason, "\x00") || strings.TrimSpace(reason) == "" || len(reason) > 4096 {
		m.rt.Fatalf("reason %q cannot be one", reason)
	}
	return reason
}

// orderLeases: what holds an order key ends with the lease of its message, or is blocked (I21).
func (m *machine) orderLeases(d tables.Dump) {
	got, want := []hold{}, slices.Clone(m.model.holds)
	for _, o := range d.OrderLeases {
		key := orderKey{o.Consumer, o.Target, o.Tenant, o.OrderKey}
		got = append(got, hold{orderKey: key, id: o.MessageID, until: m.virtual(o.LeasedUntil), blocked: o.Blocked})
	}
	for i := range want {
		h := &want[i]
		if r := m.model.find(h.id); r != nil && !h.blocked {
			h.until = r.until
		}
	}
	compare := func(a, b hold) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.target, b.target), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.order, b.order))
	}
	slices.SortFunc(got, compare)
	slices.SortFunc(want, compare)
	equalAll(m, "order leases", got, want)
	m.model.holds = want
}

func (m *machine) pauses(d tables.Dump) {
	compare := func(a, b pause) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.target, b.target), cmp.Compare(a.kind, b.kind), cmp.Compare(a.tenant, b.tenant))
	}
	var got []pause
	for _, p := range d.Pauses {
		got = append(got, pause{p.Consumer, p.Target, p.Kind, p.Tenant, int(p.Mode), p.Actor, p.Reason, m.virtual(p.PausedAt)})
	}
	want := slices.SortedFunc(slices.Values(m.model.pauses), compare)
	slices.SortFunc(got, compare)
	equalAll(m, "pauses", got, want)
}

// audits: every act of an operator left a row, with who and why, and nothing else did (I17).
func (m *machine) audits(d tables.Dump) {
	var got []act
	for _, a := range d.Audits[m.seen.audits:] {
		got = append(got, act{a.Action, a.MessageID, a.Tenant, a.Actor, a.Reason})
	}
	m.seen.audits = len(d.Audits)
	var want []act
	for _, a := range m.acts {
		a.actor, a.reason = by.Actor, by.Reason
		want = append(want, a)
	}
	compare := func(a, b act) int { return cmp.Compare(a.message, b.message) }
	slices.SortStableFunc(got, compare)
	slices.SortStableFunc(want, compare)
	equalAll(m, "audit rows", got, want)
}

func (m *machine) workersSeen(d tables.Dump) {
	equal(m, "number of workers", len(d.Workers), len(m.workers))
	for _, got := range d.Workers {
		at := slices.IndexFunc(m.workers, func(w worker) bool { return w.id == got.ID })
		if at < 0 {
			m.rt.Fatalf("worker %d is not one of the model's", got.ID)
		}
		w := &m.workers[at]
		equal(m, "name of a worker", got.Name, w.name)
		if v := m.virtual(got.SeenAt); v < w.at || v > w.at+instant(d.Now.Sub(m.seen.now)/time.Microsecond) {
			m.rt.Fatalf("worker %d was seen at %d, not %d", got.ID, v, w.at)
		} else {
			w.at = v
		}
	}
}

// unwritten: a row that the model left alone was not even written as it was (I3: the version of the row is the same).
func (m *machine) unwritten() {
	if m.stage.sql == nil || m.stage.oneFile {
		return // rows carry no version
	}
	rows, err := m.stage.sql.Query(`SELECT message_id, xmin::text FROM outbox.queue UNION ALL SELECT message_id, xmin::text FROM outbox.settlement`)
	m.must(err)
	defer rows.Close()
	versions := map[int64]string{}
	for rows.Next() {
		var id int64
		var version string
		m.must(rows.Scan(&id, &version))
		versions[id] = version
	}
	m.must(rows.Err())
	if !m.renewing && !m.aged {
		for _, r := range m.seen.rows {
			if now := m.model.find(r.id); now != nil && *now == r && versions[r.id] != m.seen.versions[r.id] {
				m.rt.Fatalf("message %d was written and is the same", r.id)
			}
		}
	}
	m.seen.versions = versions
}

// conserved: what committed is there, or was removed by a purge or a policy that keeps nothing (I7). The business rows that the producers
// wrote beside the messages tell the same (I1).
func (m *machine) conserved(d tables.Dump) {
	equal(m, "messages there and removed", len(d.Messages)+m.removed, len(m.recorded))
	for _, got := range d.Messages {
		if !m.recorded[got.ID] {
			m.rt.Fatalf("message %d was never committed", got.ID)
		}
	}
	if m.stage.sql == nil {
		return
	}
	var noted, without int
	m.must(m.stage.sql.QueryRow(`SELECT
		(SELECT count(*) FROM business),
		(SELECT count(*) FROM `+m.stage.table("message")+` AS m WHERE NOT EXISTS (SELECT 1 FROM business AS b WHERE b.message_id = m.id))`).Scan(&noted, &without))
	equal(m, "business rows", noted, len(m.recorded))
	equal(m, "messages without a business row", without, 0)
}
