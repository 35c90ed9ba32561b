package property_test

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// rawLease leases below the box, where the token is the test's, examines a few entries only, and settles with tokens that no box would send.
func (m *machine) rawLease() {
	c, w := m.drawClient(), one(m.rt, "worker", m.workers)
	q := m.leasing(c, scope{all: true}, w, 3*unit)
	q.lanes = lanesOf(c, kinds)
	q.examine, q.quota, q.limit = number(m.rt, "examine", 1, 3), 2, 5
	q.after = m.drawMarks(q.lanes)
	token := binary.BigEndian.AppendUint64([]byte("rawtoken"), uint64(q.token))
	rows, err := m.stage.store.LeaseDue(m.ctx, m.leaseDue(q, token))
	m.must(err)
	want := m.bounds(q) // before the model acts
	picks := m.model.lease(q)
	want = slices.DeleteFunc(want, func(r rawRow) bool {
		n := 0
		for _, p := range picks {
			n += int(bit(p.lane == r.lane))
		}
		return n == q.quota || len(picks) == q.limit && r.lane >= picks[len(picks)-1].lane
	})
	var ids []int64
	for _, p := range picks {
		want = append(want, rawRow{p.lane, map[fate]int32{refused: db.FateRefused, granted: db.FateGranted, buried: db.FateBuried}[p.fate], p.id})
		if p.fate == granted {
			ids = append(ids, p.id)
		}
	}
	var got []rawRow
	for _, row := range rows {
		if row.Fate != db.FateClosing {
			got = append(got, rawRow{int(row.LaneNo) - 1, row.Fate, row.ID})
		}
		if row.Fate == db.FateGranted {
			m.claims[row.ID] = row.LeasedUntil
		}
	}
	slices.SortFunc(got, rawRow.compare)
	slices.SortFunc(want, rawRow.compare)
	equalAll(m, "rows of LeaseDue", got, want)
	equal(m, "closing rows", len(rows)-len(got), 1)
	m.tokens[q.token] = token
	if len(ids) == 0 {
		m.count("raw lease", "nothing")
		return
	}
	m.count("raw lease", "granted")
	m.settleRaw(c, slices.Min(ids), token, q.token)
}

// A rawRow is what LeaseDue says of a message, or of a lane it did not look through.
type rawRow struct {
	lane int
	fate int32
	id   int64
}

func (r rawRow) compare(o rawRow) int {
	return slices.Compare([]int64{int64(r.lane), int64(r.fate), r.id}, []int64{int64(o.lane), int64(o.fate), o.id})
}

// bounds are the last entries of the lanes that have as many as may be examined.
func (m *machine) bounds(q leasing) []rawRow {
	var rows []rawRow
	for i := range q.lanes {
		if due := m.model.examined(q, i); len(due) == q.examine && m.model.pausedAt(q.lanes[i]) < 0 {
			rows = append(rows, rawRow{i, db.FateBound, due[len(due)-1].id})
		}
	}
	return rows
}

func (m *machine) leaseDue(q leasing, token []byte) db.LeaseDueParams {
	p := db.LeaseDueParams{
		AllTenants: q.scope.all, Scope: []string{}, Consumer: q.consumer, Target: q.target, Lease: int64(q.length), Examine: int32(q.examine),
		LongestLease: int64(longestLease), Quota: int32(q.quota), MaxRows: int32(q.limit), BlockOnDead: q.rule.blockOnDead, Token: token,
		Worker: q.worker,
	}
	for i, l := range q.lanes {
		after := time.Time{}
		if q.after[i].due != never {
			after = m.actual(q.after[i].due)
		}
		p.Kinds, p.Tenants, p.Priorities = append(p.Kinds, l.kind), append(p.Tenants, l.tenant), append(p.Priorities, l.priority)
		p.AfterDues, p.AfterIds = append(p.AfterDues, after), append(p.AfterIds, q.after[i].id)
		p.AttemptLimits = append(p.AttemptLimits, int32(q.rule.attempts))
		p.MaxAges = append(p.MaxAges, int64(q.rule.maxAge[l.kind]))
	}
	return p
}

// settleRaw tries tokens that are not the message's, which nothing accepts (I3), and then does something with the one that is, or loses it.
func (m *machine) settleRaw(c client, id int64, token []byte, call int64) {
	other := slices.Clone(token)
	other[0]++
	for name, wrong := range map[string][]byte{"short": token[:15], "long": append(slices.Clone(token), 0), "none": {}, "free": db.FreeToken, "foreign": other} {
		ids := slices.Concat(
			raw(m, m.stage.store.SettleDelivered, db.SettleDeliveredParams{
				Ids: []int64{id}, Tokens: [][]byte{wrong}, Results: []string{""}, Consumer: c.consumer, Target: c.target, AllTenants: true, AcceptLate: true,
			}),
			raw(m, m.stage.store.SettleParked, db.SettleParkedParams{
				Ids: []int64{id}, Tokens: [][]byte{wrong}, LastErrors: []string{""}, Consumer: c.consumer, Target: c.target, AllTenants: true,
			}),
			raw(m, m.stage.store.Release, db.ReleaseParams{Ids: []int64{id}, Tokens: [][]byte{wrong}}),
		)
		renewed := raw(m, m.stage.store.Renew, db.RenewParams{Ids: []int64{id}, Tokens: [][]byte{wrong}, Lease: int64(longestLease)})
		equal(m, "rows changed by a token that is "+name, len(ids)+len(renewed), 0)
		m.count("raw token", name)
	}
	h := handle{id, call}
	switch number(m.rt, "then", 0, 2) {
	case 0:
		released := raw(m, m.stage.store.Release, db.ReleaseParams{Ids: []int64{id}, Tokens: [][]byte{token}})
		equal(m, "released", len(released) == 1, m.model.release(h))
		delete(m.claims, id)
	case 1:
		dropped := raw(m, m.stage.store.SettleDropped, db.SettleDroppedParams{
			Ids: []int64{id}, Tokens: [][]byte{token}, Consumer: c.consumer, Target: c.target, AllTenants: true,
		})
		who := settler{c.consumer, c.target, scope{all: true}, rule{drop: true}}
		equal(m, "dropped", len(dropped) == 1, m.model.deliver(who, h, ""))
		m.removed += len(dropped)
		delete(m.claims, id)
	}
}

func raw[P, R any](m *machine, operation func(context.Context, P) ([]R, error), arg P) []R {
	rows, err := operation(m.ctx, arg)
	m.must(err)
	return rows
}
