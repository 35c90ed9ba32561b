package property_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// A streamPlan is what writers and readers of one stream set out to do, all at once.
type streamPlan struct {
	writers [][]streamTx
	readers []streamReader
}

// A streamTx is a transaction of a writer.
type streamTx struct {
	appends []streamAppend
	before  time.Duration // the pauses before it begins and before it ends
	within  time.Duration
	early   bool // it writes something else before it appends
	undone  bool // it is rolled back
}

// A streamAppend is one call of Append.
type streamAppend struct {
	events []events.Event
	undone bool // the transaction goes back to the savepoint before it
}

// How a reader keeps its place.
const (
	keepsText   = iota // the text of a cursor, after an event within a page or after the page
	keepsReader        // a named reader, in the transaction that says what was read
	keepsFollow        // the text of the last event's cursor, following a feed
)

// A streamReader is a reader; what it does at each page or event it takes from its lists, over and over.
type streamReader struct {
	keeps    int
	pair     bool // two of them share the name
	filter   events.Filter
	limits   []int
	restarts []bool // from what was saved last
	saves    []int  // in percent of a page; a named reader saves the whole page when it is above 30, and rolls back otherwise
}

var (
	eventTypes   = []string{"placed", "paid", "shipped"}
	eventStreams = []string{"", "order 1", "order 2"}
	eventTenants = []string{"", "acme"}
)

// drawStream draws a plan of about so many events.
func drawStream(t *rapid.T, writers, size int) streamPlan {
	plan := streamPlan{writers: make([][]streamTx, writers)}
	for drawn := 0; drawn < size; {
		tx := streamTx{
			before: drawPause(t), within: drawPause(t),
			early:  rapid.IntRange(0, 9).Draw(t, "early") == 0,
			undone: rapid.IntRange(0, 9).Draw(t, "rolled back") == 9, // small numbers are what a counterexample shrinks to
		}
		for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "calls") {
			call := streamAppend{undone: rapid.IntRange(0, 9).Draw(t, "back to the savepoint") == 9}
			for range rapid.SampledFrom([]int{1, 1, 2, 3, 10}).Draw(t, "events") {
				drawn++
				call.events = append(call.events, drawEvent(t, fmt.Sprintf("e-%d", drawn)))
			}
			tx.appends = append(tx.appends, call)
		}
		by := rapid.IntRange(0, writers-1).Draw(t, "writer")
		plan.writers[by] = append(plan.writers[by], tx)
	}
	for keeps := range 3 {
		for range 2 {
			plan.readers = append(plan.readers, drawReader(t, keeps))
		}
	}
	return plan
}

func drawPause(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int{0, 0, 1, 2, 5, 20}).Draw(t, "pause")) * 500 * time.Microsecond
}

func drawEvent(t *rapid.T, id string) events.Event {
	return events.Event{
		ID: id, Type: rapid.SampledFrom(eventTypes).Draw(t, "type"), Tenant: rapid.SampledFrom(eventTenants).Draw(t, "tenant"),
		Stream: rapid.SampledFrom(eventStreams).Draw(t, "stream"), Payload: []byte("of " + id), Metadata: map[string]string{"id": id},
	}
}

func drawReader(t *rapid.T, keeps int) streamReader {
	r := streamReader{
		keeps: keeps, pair: rapid.Bool().Draw(t, "two of the name"),
		filter: events.Filter{
			Scope:   rapid.SampledFrom([]outbox.Scope{outbox.AllTenants, outbox.AllTenants, outbox.Tenants("acme"), {}}).Draw(t, "scope"),
			Types:   rapid.SampledFrom([][]string{nil, nil, {"paid"}, {"paid", "shipped"}}).Draw(t, "types"),
			Streams: rapid.SampledFrom([][]string{nil, nil, {"order 1", ""}}).Draw(t, "streams"),
		},
	}
	for range rapid.IntRange(1, 20).Draw(t, "steps") {
		r.limits = append(r.limits, rapid.SampledFrom([]int{1, 2, 5, 30, 200, 1000}).Draw(t, "limit"))
		r.restarts = append(r.restarts, rapid.IntRange(0, 5).Draw(t, "restart") == 5)
		r.saves = append(r.saves, rapid.IntRange(0, 100).Draw(t, "saves"))
	}
	return r
}
