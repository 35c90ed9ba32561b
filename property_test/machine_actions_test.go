package property_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// actions is one step of the machine, drawn by weight. An action that can do little here is mostly passed over.
func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": func(rt *rapid.T) { m.rt = rt; m.sync() },
		"step": func(rt *rapid.T) {
			m.rt = rt
			for {
				a := actions[one(rt, "action", weighted)]
				if a.ready == nil || a.ready(m) || number(rt, "anyway", 0, 7) == 0 {
					a.do(m)
					m.tally.steps++
					return
				}
			}
		},
	}
}

// An action may happen at any time; it has something to do when it is ready.
type action struct {
	weight int
	do     func(*machine)
	ready  func(*machine) bool
}

var (
	actions = map[string]action{
		"enqueue":           {4, (*machine).enqueue, nil},
		"enqueue many":      {2, (*machine).enqueueMany, nil},
		"enqueue handed":    {2, (*machine).enqueueHandedOff, nil},
		"late transaction":  {3, (*machine).lateTransaction, nil},
		"lease":             {8, (*machine).lease, (*machine).leasable},
		"lease lanes":       {12, (*machine).leaseLanes, (*machine).leasable},
		"lease successors":  {3, (*machine).leaseSuccessors, (*machine).leasable},
		"raw lease":         {2, (*machine).rawLease, (*machine).leasable},
		"renew":             {6, (*machine).renew, (*machine).holding},
		"release":           {2, (*machine).release, (*machine).holding},
		"settle":            {18, (*machine).settle, (*machine).holding},
		"settle again":      {6, (*machine).settleAgain, nil},
		"crash":             {1, (*machine).crash, (*machine).holding},
		"time passes":       {6, (*machine).timePasses, nil},
		"clock goes back":   {1, (*machine).clockGoesBack, nil},
		"cancel":            {2, (*machine).cancel, (*machine).holding},
		"replay":            {5, (*machine).replay, having(dead)},
		"replay matching":   {2, (*machine).replayMatching, having(dead)},
		"resolve":           {14, (*machine).resolve, having(parked)},
		"pause":             {3, (*machine).pause, (*machine).holding},
		"resume":            {1, (*machine).resume, func(m *machine) bool { return len(m.model.pauses) > 0 }},
		"release worker":    {4, (*machine).releaseWorker, (*machine).holding},
		"unblock":           {2, (*machine).unblock, (*machine).blocked},
		"purge":             {4, (*machine).purge, having(delivered, dead, cancelled, expired)},
		"expire":            {1, (*machine).expire, nil},
		"workers":           {1, (*machine).tendWorkers, nil},
		"list":              {1, (*machine).list, nil},
		"show":              {1, (*machine).show, nil},
		"stats":             {1, (*machine).stats, nil},
		"illegal arguments": {5, (*machine).illegal, nil},
	}
	weighted = expanded()
)

// expanded is each name as often as its weight says.
func expanded() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		all = append(all, slices.Repeat([]string{name}, actions[name].weight)...)
	}
	return all
}

func having(states ...state) func(*machine) bool {
	return func(m *machine) bool {
		return slices.ContainsFunc(m.model.rows, func(r row) bool { return slices.Contains(states, r.state) })
	}
}

func (m *machine) leasable() bool {
	return slices.ContainsFunc(m.model.rows, func(r row) bool {
		return r.state == pending && r.due <= m.model.now && m.model.leasable(&r) && m.model.pausedAt(r.lane) < 0
	})
}

func (m *machine) holding() bool {
	return slices.ContainsFunc(m.hands, func(h hand) bool { return m.runs(nil, h) })
}

func (m *machine) blocked() bool {
	return slices.ContainsFunc(m.model.holds, func(h hold) bool { return h.blocked })
}

func (m *machine) crash() {
	w := one(m.rt, "worker", m.workers)
	before := len(m.hands)
	m.hands = slices.DeleteFunc(m.hands, func(h hand) bool {
		r := m.model.current(h.handle())
		return r != nil && r.worker == w.id
	})
	m.count("crash", either(len(m.hands) < before, "with leases", "without"))
}

// timePasses moves every stored instant back, which is the same as the clock going on: by some units, or until something is too old, over or
// due. Whole units keep every instant apart from the clock by more than what passes by itself.
func (m *machine) timePasses() {
	d := one(m.rt, "time", slices.Concat(
		slices.Repeat([]time.Duration{unit, 3 * unit}, 6), []time.Duration{6 * unit, 7 * time.Hour, 25 * time.Hour, 49 * time.Hour}))
	var ahead []instant
	for i := range m.model.rows {
		r := &m.model.rows[i]
		for _, at := range []instant{r.expires, r.expires, r.until, r.due} {
			if r.held() && r.until > m.model.now && at > m.model.now && at <= r.until {
				ahead = append(ahead, at)
			}
		}
	}
	if len(ahead) > 0 && number(m.rt, "until", 0, 1) == 0 {
		units := (one(m.rt, "instant", ahead) - m.model.now + micros(unit) - 1) / micros(unit)
		d = time.Duration(units) * unit
	}
	m.pass(d)
	m.count("time", "passes")
}

// clockGoesBack is a step of the database's clock, after which leases end further ahead than any lease may (I15).
func (m *machine) clockGoesBack() {
	m.pass(-one(m.rt, "time", []time.Duration{3 * unit, 9 * unit}))
	m.stepped = true
	m.count("time", "goes back")
}

func (m *machine) pass(d time.Duration) {
	m.stage.age(m.t, d)
	m.model.now, m.aged = m.model.now+micros(d), true
	if m.open != nil { // what is not committed nobody can move
		m.open.shift(micros(d))
	}
}
