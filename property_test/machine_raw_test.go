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
	m.tokens[q.token] = token
	var got []rawRow
	held := int64(0) // the message to settle
	for _, row := range raw(m, m.stage.store.LeaseDue, m.leaseDue(q, token)) {
		got = append(got, rawRow{int(row.LaneNo) - 1, row.Fate, row.ID})
		switch row.Fate {
		case db.FateClosing:
			got[len(got)-1] = closing
		case db.FateGranted:
			m.claims[row.ID] = row.LeasedUntil
			held = max(held, row.ID)
		}
	}
	want := m.rawRows(q)
	slices.SortFunc(got, rawRow.compare)
	slices.SortFunc(want, rawRow.compare)
	equalAll(m, "rows of LeaseDue", got, want)
	m.count("raw lease", either(held > 0, "granted", "nothing"))
	if held > 0 {
		m.settleRaw(c, held, token, q.token)
	}
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

// closing is the row that ends every answer.
var closing = rawRow{fate: db.FateClosing}

// rawRows leases in the model and gives what LeaseDue must say of it: each pick, and the last entry examined of each lane that has as many
// as may be examined, unless it gave its quota or the pass was full by then.
func (m *machine) rawRows(q leasing) []rawRow {
	rows := []rawRow{closing}
	ends := map[int]int64{}
	for i := range q.lanes {
		if due := m.model.examined(q, i); len(due) == q.examine && m.model.pausedAt(q.lanes[i]) < 0 {
			ends[i] = due[len(due)-1].id
		}
	}
	picks := m.model.lease(q)
	for _, p := range picks {
		rows = append(rows, rawRow{p.lane, map[fate]int32{refused: db.FateRefused, granted: db.FateGranted, buried: db.FateBuried}[p.fate], p.id})
	}
	for i, id := range ends {
		full := len(picks) == q.limit && i >= picks[len(picks)-1].lane
		if pickedIn(picks, i) < q.quota && !full {
			rows = append(rows, rawRow{i, db.FateBound, id})
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
	for name, wrong := range map[string][]byte{
		"short": token[:15], "long": append(slices.Clone(token), 0), "none": {}, "free": db.FreeToken, "foreign": other,
	} {
		ids := slices.Concat(
			raw(m, m.stage.store.SettleDelivered, db.SettleDeliveredParams{
				Ids: []int64{id}, Tokens: wrong, Results: []string{""}, Consumer: c.consumer, Target: c.target, AllTenants: true, AcceptLate: true,
			}),
			raw(m, m.stage.store.SettleParked, db.SettleParkedParams{
				Ids: []int64{id}, Tokens: wrong, LastErrors: []string{""}, Consumer: c.consumer, Target: c.target, AllTenants: true,
			}),
			raw(m, m.stage.store.Release, db.ReleaseParams{Ids: []int64{id}, Tokens: wrong, Unsures: []bool{true}}),
		)
		renewed := raw(m, m.stage.store.Renew, db.RenewParams{Ids: []int64{id}, Tokens: wrong, Lease: int64(longestLease), LongestLease: int64(longestLease)})
		equal(m, "rows changed by a token that is "+name, len(ids)+len(renewed), 0)
		m.count("raw token", name)
	}
	h := handle{id, call}
	switch number(m.rt, "then", 0, 2) {
	case 0:
		released := raw(m, m.stage.store.Release, db.ReleaseParams{Ids: []int64{id}, Tokens: token, Unsures: []bool{false}})
		equal(m, "released", len(released) == 1, m.model.release(h, false))
		delete(m.claims, id)
	case 1:
		dropped := raw(m, m.stage.store.SettleDropped, db.SettleDroppedParams{
			Ids: []int64{id}, Tokens: token, Consumer: c.consumer, Target: c.target, AllTenants: true,
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
