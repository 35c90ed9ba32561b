package property_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// append commits events.
func (c *court) append(log *events.Log, given ...events.Event) []events.Receipt {
	c.Helper()
	tx := c.stage.begin(c.tb)
	receipts, err := log.Append(c.ctx, tx.Tx, given...)
	if commitErr := tx.commit(); err != nil && !errors.Is(err, events.ErrConflict) || commitErr != nil {
		c.Fatalf("append: %v, %v", err, commitErr)
	}
	return receipts
}

// stream reads all, once so many events are there to be read.
func (c *court) stream(log *events.Log, n int) []events.Event {
	c.Helper()
	for deadline := time.Now().Add(streamTimeout); ; time.Sleep(streamPoll) {
		page := of(log.Read(c.ctx, events.Cursor{}, 1000, events.Filter{Scope: outbox.AllTenants})).must(c)
		if len(page.Events) >= n {
			return page.Events
		}
		if time.Now().After(deadline) {
			c.Fatalf("%d events of %d can be read", len(page.Events), n)
		}
	}
}

// twice derives as many effects as the payload is long from events of two types.
var twice = events.Subscription{
	Name: "twice", Consumer: "mail", Target: "smtp", Types: []string{"placed", "paid"},
	Derive: func(e events.Event) ([]outbox.Effect, error) { return effectsOf(e), nil },
}

func effectsOf(e events.Event) []outbox.Effect {
	effects := make([]outbox.Effect, len(e.Payload))
	for i := range effects {
		effects[i] = outbox.Effect{Kind: "a", Payload: []byte(e.ID)}
	}
	return effects
}

// once derives one effect from any event.
var once = events.Subscription{
	Name: "once", Consumer: "audit", Target: "file",
	Derive: func(events.Event) ([]outbox.Effect, error) { return []outbox.Effect{{Kind: "b"}}, nil },
}

// derived is what the subscriptions make of an event, in the form of messages.
func derived(e events.Event) (effects []string) {
	if e.Type != "shipped" {
		for i := range e.Payload {
			effects = append(effects, fmt.Sprintf("%q mail smtp a twice:%s:%d %d %s %s", e.Tenant, e.ID, i, e.Position, e.ID, e.ID))
		}
	}
	return append(effects, fmt.Sprintf("%q audit file b once:%s:0 %d %s ", e.Tenant, e.ID, e.Position, e.ID))
}

// messages is what is stored, in the form of derived.
func (c *court) messages() (effects []string) {
	for _, m := range c.stage.dump(c.tb).Messages {
		effects = append(effects, fmt.Sprintf("%q %s %s %s %s %d %s %s", m.Tenant, m.Consumer, m.Target, m.Kind, m.Key, m.SourcePosition, m.SourceEventID, m.Payload))
	}
	slices.Sort(effects)
	return effects
}

func drawSmallEvent(t *rapid.T, id string) events.Event {
	return events.Event{
		ID: id, Tenant: rapid.SampledFrom(eventTenants).Draw(t, "tenant"), Type: rapid.SampledFrom(eventTypes).Draw(t, "type"),
		Payload: make([]byte, rapid.IntRange(0, 3).Draw(t, "effects")),
	}
}

// However often ids are given again, in one batch or several, alike or not: an id's first event is stored, and what the subscriptions derive from
// it is recorded once, under keys that follow from it. The rest is a duplicate or a conflict, and has no effects.
//
// Shows: S1.1 S1.2 S1.34 S1.35 S2.1 I33
func TestAppendOnceByID(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		log := of(events.New(c.box, events.Config{Subscriptions: []events.Subscription{twice, once}})).must(c)
		stored := map[string]events.Event{}
		for range rapid.IntRange(1, 6).Draw(c.T, "transactions") {
			before := maps.Clone(stored)
			tx := c.stage.begin(c.tb)
			for range rapid.IntRange(1, 2).Draw(c.T, "calls") {
				var batch []events.Event
				for range rapid.IntRange(0, 6).Draw(c.T, "events") {
					batch = append(batch, drawSmallEvent(c.T, fmt.Sprint("e-", rapid.IntRange(0, 5).Draw(c.T, "id"))))
				}
				receipts, err := log.Append(c.ctx, tx.Tx, batch...)
				conflicts := c.judge(stored, batch, receipts)
				var conflict *events.ConflictError
				if errors.As(err, &conflict) != (len(conflicts) > 0) || conflict == nil && err != nil ||
					conflict != nil && !slices.Equal(conflict.Conflicts, conflicts) {
					c.Fatalf("append of %+v: %v, want the conflicts %+v", batch, err, conflicts)
				}
			}
			end := tx.commit
			if rapid.Bool().Draw(c.T, "rolled back") {
				end, stored = tx.rollback, before
			}
			if err := end(); err != nil {
				c.Fatal(err)
			}
		}
		var want []string
		for _, e := range stored {
			want = append(want, derived(e)...)
		}
		slices.Sort(want)
		if got := c.messages(); !slices.Equal(got, want) {
			c.Fatalf("messages\n%q, want\n%q", got, want)
		}
		if got := c.stream(log, len(stored)); len(got) != len(stored) {
			c.Fatalf("%d events are stored, not %d", len(got), len(stored))
		}
	})
}

// judge says of receipts whether they are right, enters what is stored, and gives the conflicts.
func (c *court) judge(stored map[string]events.Event, batch []events.Event, receipts []events.Receipt) (conflicts []events.Conflict) {
	if len(receipts) != len(batch) {
		c.Fatalf("%d receipts of %d events", len(receipts), len(batch))
	}
	for i, e := range batch {
		got, id := receipts[i], e.Tenant+" "+e.ID
		stands, taken := stored[id]
		want := outbox.Recorded
		switch {
		case taken && stands.Type == e.Type && len(stands.Payload) == len(e.Payload):
			want = outbox.Duplicate
		case taken:
			want = outbox.Conflicted
			conflicts = append(conflicts, events.Conflict{Index: i, Tenant: e.Tenant, ID: e.ID, Position: stands.Position})
		default:
			e.Position = got.Position
			stands, stored[id] = e, e
		}
		effects := len(derived(e))
		if want != outbox.Recorded {
			effects = 0
		}
		if got.ID != e.ID || got.Status != want || got.Position != stands.Position || len(got.Effects) != effects {
			c.Fatalf("event %d of %+v: %+v, want %v at %d with %d effects", i, batch, got, want, stands.Position, effects)
		}
	}
	return conflicts
}

// A backfill that is interrupted anywhere and run again records each effect of each event once, beside what was recorded before; without Send
// it counts the same and records nothing.
//
// Shows: S1.1 I33
func TestBackfillOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		plain := of(events.New(c.box, events.Config{})).must(c)
		var interrupt func() // called for each derivation
		watched := twice
		watched.Derive = func(e events.Event) ([]outbox.Effect, error) { interrupt(); return effectsOf(e), nil }
		log := of(events.New(c.box, events.Config{Subscriptions: []events.Subscription{watched}})).must(c)
		interrupt = func() {}

		n := rapid.IntRange(0, 12).Draw(c.T, "events")
		for i := range n {
			c.append(rapid.SampledFrom([]*events.Log{plain, plain, log}).Draw(c.T, "log"), drawSmallEvent(c.T, fmt.Sprint("e-", i)))
		}
		before := c.messages()
		request := events.BackfillRequest{Subscription: "twice", Scope: outbox.AllTenants, Batch: rapid.IntRange(1, 4).Draw(c.T, "batch")}
		wanted := func() (want []string) {
			for _, e := range c.stream(plain, n) {
				want = append(want, derived(e)[:len(derived(e))-1]...)
			}
			slices.Sort(want)
			return want
		}
		want := wanted()
		counted := of(log.Backfill(c.ctx, request)).must(c)
		if got := c.messages(); !slices.Equal(got, before) || counted.Effects != len(want) || counted.Recorded+counted.Duplicates+counted.Conflicts != 0 {
			c.Fatalf("without Send: %+v, and messages %q, before %q", counted, got, before)
		}

		request.Send = true
		for run := 0; ; run++ {
			ctx, cancel := context.WithCancel(c.ctx)
			stopAt := rapid.IntRange(0, 10).Draw(c.T, "interrupted at") // 0: never
			if run == 10 {
				stopAt = 0
			}
			step := func() {
				if stopAt--; stopAt == 0 {
					cancel()
				}
			}
			interrupt = step
			more := rapid.IntRange(0, 3).Draw(c.T, "appended after batch")
			request.Progress = func(events.Backfilled) {
				if more--; more == 0 {
					n++
					c.append(plain, drawSmallEvent(c.T, fmt.Sprint("e-", n-1)))
				}
				step()
			}
			c.stream(plain, n)
			present := n
			done, err := log.Backfill(ctx, request)
			cancel()
			if err == nil && done.Recorded+done.Duplicates != done.Effects {
				c.Fatalf("done: %+v", done)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				c.Fatal(err)
			}
			if err == nil && present == n {
				break
			}
		}
		if got := c.messages(); !slices.Equal(got, wanted()) {
			c.Fatalf("messages\n%q, want\n%q", got, wanted())
		}
		if readers := of(log.Readers(c.ctx, "", 10)).must(c); len(readers) != 0 {
			c.Fatalf("left behind: %+v", readers)
		}
	})
}
