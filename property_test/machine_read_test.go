package property_test

import (
	"cmp"
	"errors"
	"slices"

	"github.com/fencepost-go/fencepost/outbox"
)

// list is what a list of one state holds, in its order: open messages by rising id, delivered ones by falling id, others newest first.
func (m *model) list(s scope, word string, f outbox.Filter) []int64 {
	var rows []*row
	for i := range m.rows {
		r := &m.rows[i]
		fits := (f.Consumer == "" || f.Consumer == r.consumer) && (f.Target == "" || f.Target == r.target) && (f.Kind == "" || f.Kind == r.kind)
		if s.has(r.tenant) && fits && (r.word(m.now) == word || word == "" && r.state.open()) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *row) int {
		switch {
		case a.state.open():
			return cmp.Compare(a.id, b.id)
		case a.state == delivered:
			return cmp.Compare(b.id, a.id)
		default:
			return cmp.Or(cmp.Compare(b.settled, a.settled), cmp.Compare(b.id, a.id))
		}
	})
	var ids []int64
	for _, r := range rows {
		ids = append(ids, r.id)
	}
	return ids
}

// list pages through one state.
func (m *machine) list() {
	theirs, ours := m.drawScope()
	query := outbox.ListQuery{
		State: one(m.rt, "state", []outbox.State{
			"", outbox.StatePending, outbox.StateLeased, outbox.StateParked, outbox.StateDelivered, outbox.StateDead, outbox.StateCancelled,
			outbox.StateExpired,
		}),
		Limit: number(m.rt, "limit", 1, 4),
	}
	if number(m.rt, "filter", 0, 3) == 0 {
		query.Filter = outbox.Filter{Consumer: places[0].consumer, Kind: "a"}
	}
	want := m.model.list(ours, string(query.State), query.Filter)
	var got []int64
	for {
		page, err := m.box.List(m.ctx, theirs, query)
		m.must(err)
		for _, summary := range page.Messages {
			got = append(got, summary.ID)
			m.summed(summary)
		}
		if !page.More {
			break
		}
		query.From = page.Next
	}
	equalAll(m, "listed", got, want)
	m.count("list", either(len(got) > 0, "found", "nothing"))
}

// summed compares what is shown of a message with the model's.
func (m *machine) summed(s outbox.Summary) {
	r := m.model.find(s.ID)
	want := outbox.Summary{
		ID: r.id, Tenant: r.tenant, Consumer: r.consumer, Target: r.target, Kind: r.kind, Key: r.key, OrderKey: r.order,
		State: outbox.State(r.word(m.model.now)), Attempt: r.attempt, Epoch: r.epoch, Replays: r.replays, Cause: outbox.Cause(r.cause),
		Reason: cmp.Or(r.reason, r.lastError),
		// Instants that do not apply are zero, and so is "never".
		CreatedAt: m.actual(r.created), ReplayedAt: s.ReplayedAt, DueAt: s.DueAt, LeasedUntil: s.LeasedUntil, SettledAt: s.SettledAt,
	}
	if r.state == delivered {
		want.Reason = s.Reason // a list of delivered messages tells none
	}
	equal(m, "summary", s, want)
	equal(m, "replayed", m.virtual(s.ReplayedAt), r.replayed)
	if r.state.open() {
		equal(m, "due", m.virtual(s.DueAt), r.due)
		equal(m, "leased until", m.virtual(s.LeasedUntil), r.until)
	} else {
		equal(m, "settled", m.virtual(s.SettledAt), r.settled)
	}
}

// show reads one message whole.
func (m *machine) show() {
	theirs, ours := m.drawScope()
	id := m.drawIDs(func(*row) bool { return true })[0]
	got, err := m.box.Show(m.ctx, theirs, id)
	r := m.model.within(ours, id)
	if r == nil {
		if !errors.Is(err, outbox.ErrNotFound) {
			m.rt.Fatalf("show of a message out of scope: %v", err)
		}
		m.count("show", "not found")
		return
	}
	m.must(err)
	m.summed(got.Summary)
	equal(m, "payload", string(got.Payload), string(m.effects[id].Payload))
	equal(m, "metadata", content(outbox.Effect{Metadata: got.Metadata}), content(outbox.Effect{Metadata: m.effects[id].Metadata}))
	equal(m, "result", got.Result, r.result)
	if r.state.open() {
		want := r.expires
		if want == forever {
			want = never // which it shows as zero
		}
		equal(m, "expires", m.virtual(got.ExpiresAt), want)
		equal(m, "born", m.virtual(got.BornAt), r.born)
		equal(m, "attempt limit", got.AttemptLimit, r.limit)
	}
	worker := ""
	for _, w := range m.workers {
		if w.id == cmp.Or(r.settledBy, r.worker) {
			worker = w.name
		}
	}
	equal(m, "worker", got.Worker, worker)
	m.count("show", "found")
}

// stats counts (I25: counts are made of the rows themselves).
func (m *machine) stats() {
	theirs, ours := m.drawScope()
	got, err := m.box.Stats(m.ctx, theirs)
	m.must(err)
	lanes, parkedBy := map[lane]outbox.LaneCount{}, map[outbox.ParkedCount]int64{}
	settled := map[state]int64{}
	for i := range m.model.rows {
		r := &m.model.rows[i]
		settled[r.state]++
		if !ours.has(r.tenant) {
			continue
		}
		switch r.state {
		case parked:
			parkedBy[outbox.ParkedCount{Consumer: r.consumer, Target: r.target, Kind: r.kind}]++
		case pending:
			n := lanes[r.lane]
			n.Due += bit(r.due <= m.model.now && r.until <= m.model.now)
			n.Deferred += bit(r.due > m.model.now)
			n.Leased += bit(r.until > m.model.now)
			lanes[r.lane] = n
		}
	}
	equal(m, "lanes", len(got.Lanes), len(lanes))
	for _, n := range got.Lanes {
		want := lanes[lane{n.Consumer, n.Target, n.Kind, n.Tenant, n.Priority}]
		equal(m, "due, deferred, leased", [3]int64{n.Due, n.Deferred, n.Leased}, [3]int64{want.Due, want.Deferred, want.Leased})
	}
	equal(m, "places with parked messages", len(got.Parked), len(parkedBy))
	for _, n := range got.Parked {
		count := n.Parked
		n.Parked = 0
		equal(m, "parked", count, parkedBy[n])
	}
	equal(m, "dead, cancelled, expired", [3]int64{got.Dead, got.Cancelled, got.Expired}, [3]int64{settled[dead], settled[cancelled], settled[expired]})
	m.dueLanes(theirs, ours)
	pauses, err := m.box.Pauses(m.ctx, theirs)
	m.must(err)
	visible := 0
	for _, p := range m.model.pauses {
		visible += int(bit(p.tenant == outbox.Any || ours.has(p.tenant)))
	}
	equal(m, "pauses", len(pauses), visible)
	m.count("stats", "counted")
}

// dueLanes lists the lanes in which something came due, whoever holds it.
func (m *machine) dueLanes(theirs outbox.Scope, ours scope) {
	c := m.drawClient()
	got, err := m.box.DueLanes(m.ctx, outbox.LaneQuery{Consumer: c.Consumer, Kinds: kinds, Scope: theirs, Limit: 1000})
	m.must(err)
	n := 0
	for _, l := range lanesOf(c, kinds) {
		due := m.model.due(l)
		if len(due) == 0 || !ours.has(l.tenant) || m.model.pausedAt(l) >= 0 {
			continue
		}
		n++
		at := slices.IndexFunc(got, func(g outbox.DueLane) bool {
			return g.Lane == outbox.Lane{Kind: l.kind, Tenant: l.tenant, Priority: l.priority}
		})
		if at < 0 {
			m.rt.Fatalf("lane %v is due and not listed", l)
		}
		equal(m, "due since", m.virtual(got[at].Since), due[0].due)
	}
	equal(m, "due lanes", len(got), n)
}
