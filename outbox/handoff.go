package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/content"
)

// A HandOffPlan says which of the messages that are enqueued through a box its worker takes.
type HandOffPlan struct {
	Consumer *Consumer
	// As is who leases, verified by Identify; nil where the box requires no credential.
	As    *Identity
	Kinds []string
	Scope Scope
	// For is the length of the lease that a message is born with, bounded as LeasePlan.For is. Until two thirds of it are over, or the
	// message's age, the worker may confirm it.
	For time.Duration
	// Ask is after how long a message is asked for of which Committed says nothing: some transactions commit without a word.
	Ask time.Duration
}

// An Offer is what a worker has room for at the moment.
type Offer struct {
	// Worker is the id that RegisterWorker gave.
	Worker int64
	// Room is how many messages there may be that were born and not dropped.
	Room int
	// Except are the lanes of which nothing is taken.
	Except map[Lane]bool
}

// A HandOff lets a worker have the messages that its own process enqueues without asking the database for them: while it offers room, what
// Enqueue stores through the box is born leased to it. The worker learns of it by Committed, confirms with one statement what is there, and
// drops what it is done with. What it does not confirm stays leased until the lease that it was born with is over, which costs an attempt,
// or is released. A HandOff may be used from several goroutines at once and never blocks; one of them, the worker's, calls Take and Confirm.
type HandOff struct {
	box   *Box
	plan  HandOffPlan
	ready chan struct{}

	mu       sync.Mutex
	offer    Offer
	reserved int // of the room, by statements under way
	born     map[int64]*Born
	said     []int64   // by Committed, in its order
	next     time.Time // when Take gives one that Committed did not name; zero: none is born
	ended    bool
}

// A Born message is leased to the worker of its HandOff, if its transaction committed.
type Born struct {
	Message Message
	// Late is when to give it back rather than to start it; Ends is when its lease does. Both are this process's, and not after the database's.
	Late, Ends time.Time
	// Committed says that a transaction did which stored it, although perhaps not the savepoint.
	Committed bool

	asked    bool
	since    time.Time
	metadata string
}

// handOffs are those of a box: a copy is made at each change, so that an enqueue without any costs one look.
type handOffs struct {
	mu     sync.Mutex
	all    atomic.Pointer[[]*HandOff]
	denied atomic.Bool // the role of a producer may not lease
}

func (hs *handOffs) list() []*HandOff {
	if all := hs.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (hs *handOffs) change(change func([]*HandOff) []*HandOff) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	all := change(slices.Clone(hs.list()))
	hs.all.Store(&all)
}

// HandOff begins one, which ends with its End. It offers nothing yet and sends no statement.
func (b *Box) HandOff(plan HandOffPlan) (*HandOff, error) {
	var found problems
	found.consumer(plan.Consumer)
	found.kinds(plan.Kinds)
	plan.Scope.check(&found)
	found.lease("For", plan.For)
	if err := found.err(); err != nil {
		return nil, failed("hand off", err)
	}
	h := &HandOff{box: b, plan: plan, ready: make(chan struct{}, 1), born: map[int64]*Born{}}
	b.handOffs.change(func(all []*HandOff) []*HandOff { return append(all, h) })
	return h, nil
}

// End ends it and gives what was born and not dropped: to be released, as far as it was committed.
func (h *HandOff) End() []Born {
	h.box.handOffs.change(func(all []*HandOff) []*HandOff {
		return slices.DeleteFunc(all, func(other *HandOff) bool { return other == h })
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	var left []Born
	for _, born := range h.born {
		left = append(left, h.whole(born))
	}
	h.born, h.said = nil, nil
	return left
}

// Offer takes the place of the offer before.
func (h *HandOff) Offer(offer Offer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offer = offer
}

// Ready receives when Take has something to give, or Next has changed.
func (h *HandOff) Ready() <-chan struct{} { return h.ready }

// Next is when Take gives something at the latest; zero when nothing is born.
func (h *HandOff) Next() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// Pending says whether something is born and not dropped, or may be at any moment.
func (h *HandOff) Pending() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.born)+h.reserved > 0
}

// Take gives, each once, the messages that Committed named, and once more each that is late by now or that it did not name for HandOffPlan.Ask.
// All stay until they are dropped.
func (h *HandOff) Take(now time.Time) []Born {
	h.mu.Lock()
	defer h.mu.Unlock()
	var taken []Born
	for _, id := range h.said {
		if born := h.born[id]; born != nil {
			taken = append(taken, h.whole(born))
		}
	}
	h.said = nil
	if h.next.IsZero() || now.Before(h.next) {
		return taken
	}
	h.next = time.Time{}
	for _, born := range h.born {
		if born.Committed {
			continue
		}
		if at := h.lookAt(born); !now.Before(at) {
			born.asked = true
			taken = append(taken, h.whole(born))
		}
		if now.Before(born.Late) {
			h.lookBy(h.lookAt(born))
		}
	}
	return taken
}

// Again makes Take give messages once more.
func (h *HandOff) Again(taken []Born) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range taken {
		born := h.born[t.Message.ID]
		switch {
		case born == nil:
		case t.Committed:
			h.said = append(h.said, t.Message.ID)
		default:
			born.asked = false
			h.lookBy(h.lookAt(born))
		}
	}
	h.wake()
}

// Drop forgets messages, whose room is free again.
func (h *HandOff) Drop(ids ...int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.born, id)
	}
}

// Confirm extends the leases of messages to length from now, and gives those that are there and may be performed; paused are there too, to be
// released. Of the others nothing is there, or not yet: a savepoint or the whole transaction was rolled back, or is still open. One statement for
// each 1,000. An error says nothing about any of them; ErrRevoked, ErrNotPermitted and ErrUnidentified are those of a lease.
func (h *HandOff) Confirm(ctx context.Context, born []Born, length time.Duration) (confirmed, paused []Message, err error) {
	var found problems
	lease := found.lease("length", length)
	if err := found.refused(ctx); err != nil {
		return nil, nil, failed("confirm", err)
	}
	if err := h.box.admits(h.plan.As, h.plan.Consumer, h.plan.Scope); err != nil {
		return nil, nil, failed("confirm", err)
	}
	messages := make([]Message, len(born))
	for i := range born {
		messages[i] = born[i].Message
	}
	for _, batch := range batches(places(len(messages)), func(i int) int64 { return messages[i].ID }) {
		params := db.RenewParams{Lease: lease, LongestLease: micros(db.LongestLease)}
		params.Ids, params.Tokens = heldArrays(messages, batch)
		rows, err := h.box.store.Renew(ctx, params)
		if err != nil {
			return nil, nil, failed("confirm", err)
		}
		standing := make(map[int64]db.RenewRow, len(rows))
		for _, row := range rows {
			standing[row.ID] = row
		}
		for _, i := range batch {
			row, ok := standing[messages[i].ID]
			if !ok {
				continue
			}
			messages[i].LeasedUntil = row.LeasedUntil.UTC()
			if row.PauseMode >= 0 {
				paused = append(paused, messages[i])
			} else {
				confirmed = append(confirmed, messages[i])
			}
		}
	}
	h.box.observer.Leased(ctx, confirmed)
	return confirmed, paused, nil
}

// whole is a copy with what is read only when it is needed.
func (h *HandOff) whole(born *Born) Born {
	if born.metadata != "" {
		born.Message.Metadata, born.metadata = h.box.metadataOf(born.Message.ID, born.metadata), ""
	}
	return *born
}

// lookAt is when Take gives a message of which Committed said nothing.
func (h *HandOff) lookAt(born *Born) time.Time {
	if at := born.since.Add(h.plan.Ask); !born.asked && at.Before(born.Late) {
		return at
	}
	return born.Late
}

// lookBy makes Next no later than that.
func (h *HandOff) lookBy(at time.Time) {
	if h.next.IsZero() || at.Before(h.next) {
		h.next = at
	}
}

func (h *HandOff) wake() {
	select {
	case h.ready <- struct{}{}:
	default: // it is awake
	}
}

// reserve takes room for an effect that may be born leased, and gives the worker it is for.
func (h *HandOff) reserve(e Effect) (worker int64, ok bool) {
	p := h.plan
	if e.Consumer != p.Consumer.name || e.Target != p.Consumer.target || e.OrderKey != "" || e.Delay != 0 || !e.DueAt.IsZero() ||
		!slices.Contains(p.Kinds, e.Kind) || !p.Scope.Includes(e.Tenant) || h.box.admits(p.As, p.Consumer, p.Scope) != nil {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || len(h.born)+h.reserved >= h.offer.Room || h.offer.Except[Lane{Kind: e.Kind, Tenant: e.Tenant, Priority: e.Priority}] {
		return 0, false
	}
	h.reserved++
	return h.offer.Worker, true
}

// bear ends a reservation; nil when nothing was born.
func (h *HandOff) bear(born *Born) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reserved--
	if born == nil || h.ended {
		return
	}
	h.born[born.Message.ID] = born
	before := h.next
	if h.lookBy(h.lookAt(born)); h.next != before {
		h.wake()
	}
}

// committed takes note of its own among the messages and gives the others.
func (h *HandOff) committed(ids []int64) (others []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		born := h.born[id]
		if born == nil {
			others = append(others, id)
		} else if !born.Committed {
			born.Committed = true
			h.said = append(h.said, id)
		}
	}
	if len(others) < len(ids) {
		h.wake()
	}
	return others
}

// handedOff says whether all of the messages were born leased to workers of this process, which need no other hint.
func (b *Box) handedOff(ids []int64) bool {
	for _, h := range b.handOffs.list() {
		if ids = h.committed(ids); len(ids) == 0 {
			return true
		}
	}
	return false
}

// A taker is the worker that an effect is to be born leased to; the zero one is none.
type taker struct {
	*HandOff
	worker int64
}

// takers finds those of some effects, and reserves their room; nil when there is none at all.
func (b *Box) takers(effects []Effect, batch []int) []taker {
	all := b.handOffs.list()
	if len(all) == 0 || b.handOffs.denied.Load() {
		return nil
	}
	var takers []taker
	for n, i := range batch {
		for _, h := range all {
			if worker, ok := h.reserve(effects[i]); ok {
				if takers == nil {
					takers = make([]taker, len(batch))
				}
				takers[n] = taker{h, worker}
				break
			}
		}
	}
	return takers
}

// send stores a batch, each effect with the lease of its taker.
func (r *enqueueRun) send(ctx context.Context, batch []int, p db.EnqueueParams) ([]db.EnqueueRow, error) {
	takers := r.box.takers(r.effects, batch)
	if takers == nil {
		return r.box.store.Enqueue(ctx, r.tx, p)
	}
	token, since := newToken(), time.Now()
	params := db.EnqueueLeasedParams{
		Tenants: p.Tenants, Consumers: p.Consumers, Targets: p.Targets, Kinds: p.Kinds, Keys: p.Keys, OrderKeys: p.OrderKeys, Priorities: p.Priorities,
		Digests: p.Digests, Metadatas: p.Metadatas, Payloads: p.Payloads, SourcePositions: p.SourcePositions, SourceEventIds: p.SourceEventIds,
		MaxAges: p.MaxAges, DueAts: p.DueAts, Delays: p.Delays, Token: token[:], Leases: make([]int64, len(batch)), Workers: make([]int64, len(batch)),
	}
	for n, t := range takers {
		if t.HandOff != nil {
			params.Leases[n], params.Workers[n] = micros(t.plan.For), t.worker
		}
	}
	var answer []db.EnqueueLeasedRow
	err := context.Canceled // unless the statement returns
	defer func() {          // however the statement ends
		for n, t := range takers {
			if t.HandOff == nil {
				continue
			}
			var born *Born
			if err == nil && answer[n].LeasedAt != 0 {
				born = t.newBorn(r.effects[batch[n]], answer[n], p.Metadatas[n], p.MaxAges[n], token, since)
			}
			t.bear(born)
		}
	}()
	answer, err = r.box.store.EnqueueLeased(ctx, r.tx, params)
	if errors.Is(err, db.ErrDenied) && !r.box.handOffs.denied.Swap(true) {
		r.box.log.Error("a producer's role may not lease, so nothing is handed off any more: grant it the sender's rights too", "error", err)
	}
	rows := make([]db.EnqueueRow, len(answer))
	for n, row := range answer {
		rows[n] = db.EnqueueRow{ID: row.ID, Stored: row.Stored}
	}
	return rows, err
}

// newBorn is an effect as a lease would have given it.
func (h *HandOff) newBorn(e Effect, row db.EnqueueLeasedRow, metadata string, maxAge int64, token [16]byte, since time.Time) *Born {
	at := time.UnixMicro(row.LeasedAt).UTC()
	late := since.Add(h.plan.For - h.plan.For/3)
	for _, age := range []int64{maxAge, h.plan.Consumer.maxAge(e.Kind)} {
		if aged := since.Add(time.Duration(age) * time.Microsecond); age > 0 && age < micros(h.plan.For) && aged.Before(late) {
			late = aged // the lease statement decides on that
		}
	}
	return &Born{
		Message: Message{
			ID: row.ID, Tenant: e.Tenant, Consumer: e.Consumer, Target: e.Target, Kind: e.Kind, Key: e.Key, Priority: e.Priority,
			Payload: slices.Clone(content.Bytes(e.Payload)), SourcePosition: e.SourcePosition, SourceEventID: e.SourceEventID,
			CreatedAt: at, DueAt: at, Attempt: 1, Epoch: 1, LeasedUntil: at.Add(h.plan.For), token: token,
		},
		Late: late, Ends: since.Add(h.plan.For), since: since, metadata: metadata,
	}
}
