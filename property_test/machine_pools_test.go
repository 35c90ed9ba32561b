package property_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// Small closed pools make duplicates, conflicts, stale handles and shared order keys common.
var (
	places      = []place{{"mail", "smtp"}, {"mail", "sms"}, {"bank", "core"}}
	kinds       = []string{"a", "b"}
	tenants     = []string{"", "acme"}
	priorities  = []int16{0, 5}
	orderKeys   = []string{"", "x", "x", "x"}
	keys        = []string{"k1", "k2", "k3", "k4"}
	workerNames = []string{"w1", "w2"}
	payloads    = [][]byte{nil, []byte("p\x00\xff"), []byte("q")}
	metadata    = []map[string]string{nil, {"a": "1"}, {"a": "1", "b\u2028": "é\"\n"}}
	lengths     = []time.Duration{unit, 3 * unit, 6 * unit, 6 * unit} // of leases; the last is the longest
)

// one draws an element, each as likely as the others: rapid's own generators favour the first.
func one[E any](t *rapid.T, label string, of []E) E {
	return rapid.Custom(func(t *rapid.T) E { return of[uniform(t, len(of))] }).Draw(t, label)
}

// some draws distinct elements in any order.
func some[E any](t *rapid.T, label string, of []E, n int) []E {
	return rapid.Custom(func(t *rapid.T) []E {
		of := slices.Clone(of)
		for i := range n {
			j := i + uniform(t, len(of)-i)
			of[i], of[j] = of[j], of[i]
		}
		return of[:n]
	}).Draw(t, label)
}

// number draws a number between two, each as likely as the others.
func number(t *rapid.T, label string, least, most int) int {
	return rapid.Custom(func(t *rapid.T) int { return least + uniform(t, most-least+1) }).Draw(t, label)
}

// uniform is below n. It draws of so many that the remainder is nearly uniform too.
func uniform(t *rapid.T, n int) int {
	drawn := 0
	for range 12 {
		drawn = 2*drawn + int(bit(rapid.Bool().Draw(t, "bit")))
	}
	return drawn % n
}

// A place is a consumer's name and target.
type place struct{ consumer, target string }

// A client is a consumer with the rule that the model reads in its policy.
type client struct {
	*outbox.Consumer
	place
	policy outbox.Policy
	rule   rule
}

// GoString is short, for the log of what was drawn.
func (c client) GoString() string { return c.consumer + "/" + c.target }

func drawClient(t *rapid.T, box *outbox.Box, p place) client {
	flip := rapid.Bool()
	policy := outbox.Policy{
		MaxAttempts:   one(t, "attempts", []int{1, 2, 3, 3}),
		InitialDelay:  unit,
		MaxDelay:      3 * unit,
		Jitter:        outbox.NoJitter, // which has laws of its own; here every delay lies on the grid
		MaxAge:        one(t, "age", []time.Duration{0, 12 * time.Hour, outbox.NoMaxAge}),
		MaxSnooze:     one(t, "snooze", []time.Duration{0, 2 * unit}),
		AcceptLate:    flip.Draw(t, "late"),
		BlockOnDead:   flip.Draw(t, "block"),
		DropDelivered: number(t, "drop", 0, 3) == 0,
	}
	consumer, err := box.Consumer(p.consumer, p.target, policy)
	if err != nil {
		t.Fatal(err)
	}
	ages := map[string]time.Duration{"b": 6 * time.Hour}
	if consumer, err = consumer.WithMaxAges(ages); err != nil {
		t.Fatal(err)
	}
	age := map[time.Duration]instant{0: micros(24 * time.Hour), 12 * time.Hour: micros(12 * time.Hour), outbox.NoMaxAge: 0}[policy.MaxAge]
	return client{consumer, p, policy, rule{
		attempts: policy.MaxAttempts, maxAge: map[string]instant{"a": age, "b": micros(ages["b"])},
		acceptLate: policy.AcceptLate, blockOnDead: policy.BlockOnDead, drop: policy.DropDelivered,
	}}
}

// drawClient draws a consumer, mostly one that has something due.
func (m *machine) drawClient() client {
	var busy []client
	for _, c := range m.clients {
		if slices.ContainsFunc(lanesOf(c, kinds), func(l lane) bool { return slices.ContainsFunc(m.model.due(l), m.model.leasable) }) {
			busy = append(busy, c)
		}
	}
	if len(busy) > 0 && number(m.rt, "busy", 0, 3) > 0 {
		return one(m.rt, "consumer", busy)
	}
	return one(m.rt, "consumer", m.clients)
}

// drawScope draws a scope in both forms.
func (m *machine) drawScope() (outbox.Scope, scope) {
	s := one(m.rt, "scope", slices.Concat(slices.Repeat([]scope{{all: true}}, 7),
		[]scope{{tenants: []string{""}}, {tenants: []string{"acme"}}, {tenants: tenants}}))
	switch {
	case s.all:
		return outbox.AllTenants, s
	case slices.Equal(s.tenants, []string{""}):
		return outbox.Scope{}, s
	default:
		return outbox.Tenants(s.tenants...), s
	}
}

// by is who acts in every operator's call of the machine.
var by = outbox.By{Actor: "ann", Reason: "for a reason"}

// drawEffect draws an effect, now and then one that is there already; taken keys are left out.
func (m *machine) drawEffect(taken map[identity]bool) outbox.Effect {
	if len(m.model.rows) > 0 && number(m.rt, "again", 0, 7) == 0 {
		return m.effects[one(m.rt, "message", m.model.rows).id]
	}
	p := one(m.rt, "place", places)
	e := outbox.Effect{
		Tenant: one(m.rt, "tenant", tenants), Consumer: p.consumer, Target: p.target,
		Kind: one(m.rt, "kind", kinds), OrderKey: one(m.rt, "order key", orderKeys),
		Priority: one(m.rt, "priority", priorities),
		Payload:  one(m.rt, "payload", payloads), Metadata: one(m.rt, "metadata", metadata),
		MaxAge: one(m.rt, "age", []time.Duration{0, 3 * unit, 3 * unit, 6 * unit, outbox.NoMaxAge}),
	}
	switch number(m.rt, "when", 0, 5) {
	case 0:
		e.Delay = 2 * unit
	case 1:
		e.DueAt = m.actual(m.model.now + micros(2*unit))
	case 2:
		e.DueAt = m.actual(m.model.now - micros(2*unit)) // means now
	}
	free := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return taken[identity{e.Tenant, e.Consumer, key}] })
	e.Key = one(m.rt, "key", free)
	return e
}

// An identity is what a key is unique within.
type identity struct{ tenant, consumer, key string }

func identityOf(e outbox.Effect) identity { return identity{e.Tenant, e.Consumer, e.Key} }

// content is what two effects of one key must share to be the same: all but key, time and priority (I20).
func content(e outbox.Effect) string {
	return fmt.Sprintf("%q %q %q %x %q", e.Target, e.Kind, e.OrderKey, e.Payload, e.Metadata) // %q of a map sorts its keys
}

// A text is a reason as a handler gives it, and as it must be stored (I26).
type text struct{ given, full, short string }

var texts = []text{
	{given: "boom", full: "boom", short: "boom"},
	{given: " spaced\n", full: "spaced", short: "spaced"},
	{given: "nul\x00 bad\xff", full: "nul\ufffd bad\ufffd", short: "nul\ufffd bad\ufffd"},
	{given: "x" + strings.Repeat("é", 3000), full: "x" + strings.Repeat("é", 2047), short: "x" + strings.Repeat("é", 127)},
}

// message ids to act on: those there are, and one that never was.
func (m *machine) drawIDs(wanted func(*row) bool) []int64 {
	const unknown = 1 << 60
	ids, fit := []int64{unknown}, []int64{}
	for i := range m.model.rows {
		ids = append(ids, m.model.rows[i].id)
		if wanted(&m.model.rows[i]) {
			fit = append(fit, m.model.rows[i].id)
		}
	}
	if len(fit) > 0 && number(m.rt, "fit", 0, 3) > 0 {
		ids = fit
	}
	return some(m.rt, "ids", ids, number(m.rt, "number of ids", 1, min(2, len(ids))))
}
