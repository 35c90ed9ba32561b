package property_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// A walk leases from lanes as a sender does: each lane from its mark on, in passes that are cut short.
type walk struct {
	*court
	consumer *outbox.Consumer
	lanes    []outbox.PlannedLane
	drained  map[outbox.Lane]bool
	got      map[int64]int // how often a message was leased
}

func newWalk(c *court) *walk {
	w := &walk{court: c, consumer: c.consumer(outbox.Policy{MaxAge: outbox.NoMaxAge}), got: map[int64]int{}}
	for _, kind := range kinds {
		for _, tenant := range tenants {
			for _, priority := range priorities {
				w.lanes = append(w.lanes, outbox.PlannedLane{Lane: outbox.Lane{Kind: kind, Tenant: tenant, Priority: priority}})
			}
		}
	}
	w.rescan()
	return w
}

// rescan starts at the front of every lane.
func (w *walk) rescan() {
	w.drained = map[outbox.Lane]bool{}
	for i := range w.lanes {
		w.lanes[i].After = outbox.Mark{}
	}
}

// pass leases a little from some lanes and keeps how far it came.
func (w *walk) pass(quota, limit int, order []int) []outbox.Message {
	plan := outbox.LeasePlan{Consumer: w.consumer, Scope: outbox.AllTenants, For: time.Hour, Quota: quota, Limit: limit}
	for _, i := range order {
		plan.Lanes = append(plan.Lanes, w.lanes[i])
	}
	pass := of(w.box.LeaseLanes(w.ctx, plan)).must(w.court)
	for n, i := range order {
		w.lanes[i].After = pass.Lanes[n].Examined
		w.drained[w.lanes[i].Lane] = pass.Lanes[n].Drained
	}
	for _, message := range pass.Messages {
		w.got[message.ID]++
	}
	return pass.Messages
}

// drawPass draws which lanes a pass serves, in which order, and where it is cut.
func (w *walk) drawPass() []outbox.Message {
	lanes := rapid.Permutation(w.all()).Draw(w.T, "lanes")[:rapid.IntRange(1, len(w.lanes)).Draw(w.T, "number of lanes")]
	return w.pass(rapid.IntRange(1, 3).Draw(w.T, "quota"), rapid.IntRange(1, 5).Draw(w.T, "limit"), lanes)
}

func (w *walk) all() []int {
	var all []int
	for i := range w.lanes {
		all = append(all, i)
	}
	return all
}

// walkOn passes until every lane is drained.
func (w *walk) walkOn() {
	for passes := 0; ; passes++ {
		if passes > 1000 {
			w.Fatalf("the walk does not end")
		}
		w.drawPass()
		done := 0
		for _, lane := range w.lanes {
			done += int(bit(w.drained[lane.Lane]))
		}
		if done == len(w.lanes) {
			return
		}
	}
}

func (w *walk) effects(label string, n int) []outbox.Effect {
	var effects []outbox.Effect
	for i := range n {
		lane := rapid.SampledFrom(w.lanes).Draw(w.T, "lane").Lane
		e := effect(fmt.Sprint(label, i))
		e.Kind, e.Tenant, e.Priority = lane.Kind, lane.Tenant, lane.Priority
		e.Delay = rapid.SampledFrom([]time.Duration{0, 0, 0, unit, 2 * unit}).Draw(w.T, "delay")
		effects = append(effects, e)
	}
	return effects
}

// A walk along the marks meets every due message once, wherever its passes are cut: a mark never passes over what was not picked.
func TestWalkMeetsEverythingOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		w := newWalk(c)
		c.enqueue(w.effects("k", rapid.IntRange(0, 25).Draw(c.T, "effects"))...)
		due, d := 0, c.stage.dump(c.tb)
		for _, q := range d.Queue {
			due += int(bit(!q.DueAt.After(d.Now)))
		}
		w.walkOn()
		for id, times := range w.got {
			if times != 1 {
				c.Fatalf("message %d was leased %d times", id, times)
			}
		}
		if len(w.got) != due {
			c.Fatalf("%d messages of %d were leased", len(w.got), due)
		}
	})
}

// Whatever went on between the passes (late commits, leases given back, leases that ran out, new messages, time), nothing below a mark is
// lost: after a rescan from the front and a walk from there everything that is due and free is leased.
func TestRescanLosesNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		w := newWalk(c)
		late := c.stage.begin(c.tb)
		of(c.box.EnqueueMany(c.ctx, late.Tx, w.effects("late", rapid.IntRange(0, 4).Draw(c.T, "late")))).must(c)
		if c.stage.oneFile { // nothing commits late
			if err := late.commit(); err != nil {
				c.Fatal(err)
			}
			late.commit = func() error { return nil }
		}
		c.enqueue(w.effects("early", rapid.IntRange(0, 12).Draw(c.T, "early"))...)
		var held []outbox.Message
		for step := range rapid.IntRange(0, 8).Draw(c.T, "steps") {
			switch rapid.IntRange(0, 4).Draw(c.T, "event") {
			case 0:
				c.stage.age(c.tb, unit) // what the marks say moves with the clock
				for i := range w.lanes {
					if after := &w.lanes[i].After; !after.Due.IsZero() {
						after.Due = after.Due.Add(-unit)
					}
				}
			case 1:
				c.enqueue(w.effects(fmt.Sprint("more ", step, " "), 2)...)
			case 2:
				if len(held) > 0 {
					if err := c.box.Release(c.ctx, held[0]); err != nil {
						c.Fatal(err)
					}
					held = held[1:]
				}
			default:
				held = append(held, w.drawPass()...)
			}
		}
		if err := late.commit(); err != nil {
			c.Fatal(err)
		}
		if rapid.Bool().Draw(c.T, "leases run out") {
			c.stage.age(c.tb, time.Hour)
		}
		w.rescan()
		w.walkOn()
		d := c.stage.dump(c.tb)
		for _, q := range d.Queue {
			if !q.DueAt.After(d.Now) && !q.LeasedUntil.After(d.Now) {
				c.Fatalf("message %d is due and free, and was not found", q.MessageID)
			}
		}
	})
}

// A lane that holds more entries than a pass may examine, none of which counts (one order key, behind its head), is walked through pass by
// pass, and what stands behind them is found without a rescan.
func TestWalkGoesOnAtTheBound(t *testing.T) {
	t.Parallel()
	numbers := rapid.OneOf(rapid.SampledFrom([]int{1, 998, 999, 1000, 1001, 2001}), rapid.IntRange(1, 2500)) // 1,000 is what a pass examines
	inMemory(t, outbox.Config{}, func(c *court) {
		w := newWalk(c)
		var effects []outbox.Effect
		for i := range numbers.Draw(c.T, "entries of one key") {
			effects = append(effects, effect(fmt.Sprint(i)))
			effects[i].OrderKey = "o"
		}
		c.enqueue(append(effects, effect("behind"))...)
		quota := rapid.IntRange(1, 2).Draw(c.T, "quota")
		for len(w.got) < 2 && !w.drained[w.lanes[0].Lane] {
			w.pass(quota, 10, []int{0})
		}
		if len(w.got) != 2 {
			c.Fatalf("%d messages were leased of 2 that can be", len(w.got))
		}
	})
}
