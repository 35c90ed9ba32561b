package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

const (
	busTarget = "bus"
	busKind   = "event"
	// defaultLease is the sender's.
	defaultLease   = 30 * time.Second
	longestTimeout = time.Hour
)

// ToBus is the subscription of a bus: it carries every event to the bus of that name, with one effect. Put it into the Config of the log that appends,
// in every process that does, whether or not the bus runs there. Its effects have no maximum age: an event waits for its bus however long that is
// down or paused.
func ToBus(name string) Subscription {
	return Subscription{Name: name, Consumer: name, Target: busTarget, Derive: func(Event) ([]outbox.Effect, error) {
		return []outbox.Effect{{Kind: busKind, MaxAge: outbox.NoMaxAge}}, nil
	}}
}

// ToBusInOrder is ToBus with the events of one stream delivered one at a time, in the order in which they were appended: one that fails holds
// up those of its stream until it is delivered or dead.
func ToBusInOrder(name string) Subscription {
	s := ToBus(name)
	s.Derive = func(e Event) ([]outbox.Effect, error) {
		return []outbox.Effect{{Kind: busKind, OrderKey: e.Stream, MaxAge: outbox.NoMaxAge}}, nil
	}
	return s
}

// A HandlerFunc handles an event in the transaction tx, which it neither commits nor rolls back. The drivers' EventHandler makes one
// of a function that takes the driver's own transaction.
type HandlerFunc func(ctx context.Context, tx db.Tx, event Event) error

// BusConfig sets up a Bus. Zero fields take their defaults; negative ones are refused.
type BusConfig struct {
	// Scope is whose events are delivered. Default: the tenant "" alone.
	Scope outbox.Scope
	// Slots is how many events are delivered at once. Each takes a connection of the store while a handler runs. Default 16, or what the
	// store's connections allow beside one for the bus itself; more than they allow is refused. On SQLite, where handlers in a transaction run one at
	// a time whatever Slots says, the default is 1: those that wait for the file keep the bus's own writes waiting too.
	Slots int
	// Retries is how often an event is tried again. Default 10. NoRetries for none.
	Retries int
	// InitialDelay doubles with each retry up to MaxDelay. Default 1 s and 5 minutes. Each delay is shortened by up to a fifth, as outbox.Policy
	// says. Backoff, if set, takes the place of the doubling.
	InitialDelay, MaxDelay time.Duration
	Backoff                func(retry int) time.Duration
	// Timeout ends the context of one handler at one event, with the cause sender.ErrTimeout, counted from when its transaction has begun; that is
	// rolled back, and the handler asked again as after any other failure. It keeps a handler that hangs from holding back every reader of the stream, which waits for transactions
	// that have written, and a receipt is written; so a handler must heed its context. Default a third of the Lease: 10 s. Between 1 ms and 1 h.
	Timeout time.Duration
	// Poll, Batch, Lease, Drain, Listen and Notify are those of sender.Config. Default: 500 ms, 100, 30 s, 10 s, off, off.
	Poll   time.Duration
	Batch  int
	Lease  time.Duration
	Drain  time.Duration
	Listen bool
	Notify bool
	// Name is the worker's label. Default: the host's name.
	Name string
}

// NoRetries as BusConfig.Retries means none.
const NoRetries = -1 << 31

// A Bus delivers each event to every handler that subscribed to its type. Subscribe before Run.
type Bus struct {
	log    *Log
	name   string
	sender *sender.Sender
	// timeout is that of one handler.
	timeout time.Duration

	mu       sync.Mutex
	handlers []subscriber // in the order in which they subscribed
	started  bool
}

// A subscriber is a handler under its name.
type subscriber struct {
	name   string
	types  []string // none: all
	inTx   HandlerFunc
	beside func(context.Context, Event) error
}

func (s subscriber) takes(e Event) bool { return len(s.types) == 0 || slices.Contains(s.types, e.Type) }

// NewBus makes the bus of that name over a log, which needs its subscription (ToBus). It reports every problem at once as outbox.ErrInvalid and sends no
// statement.
func NewBus(l *Log, name string, config BusConfig) (*Bus, error) {
	var found refusal.Problems
	if l == nil {
		found.Add("log", "is nil")
		return nil, failed("new bus", found.Err())
	}
	if s, ok := l.subscription(name); !ok || s.Consumer != name || s.Target != busTarget {
		found.Addf("name", "is that of no subscription made by ToBus: the log's Config.Subscriptions needs events.ToBus(%q)", name)
	}
	connections := l.store.Connections()
	switch {
	case config.Slots == 0 && l.store.OneWriter():
		config.Slots = 1
	case config.Slots == 0 && connections > 0:
		config.Slots = min(16, max(connections-1, 1))
	case config.Slots == 0:
		config.Slots = 16
	}
	if connections > 0 && config.Slots >= connections {
		found.Addf("Slots", "is %d: that many events and the bus itself need %d connections, the store's pool has %d: enlarge the pool, or lower Slots",
			config.Slots, config.Slots+1, connections)
	}
	switch {
	case config.Retries == 0:
		config.Retries = 10
	case config.Retries == NoRetries:
		config.Retries = 0
	}
	if config.InitialDelay == 0 {
		config.InitialDelay = time.Second
	}
	if config.MaxDelay == 0 {
		config.MaxDelay = 5 * time.Minute
	}
	if config.Timeout == 0 {
		config.Timeout = defaultLease / 3
		if config.Lease >= time.Second { // a shorter one is refused, below
			config.Timeout = min(config.Lease/3, longestTimeout)
		}
	}
	found.Lasting("Timeout", config.Timeout, time.Millisecond, longestTimeout)
	found.Between("Retries", config.Retries, 0, 9_999)
	if err := found.Err(); err != nil {
		return nil, failed("new bus", err)
	}
	b := &Bus{log: l, name: name, timeout: config.Timeout}
	consumer, err := l.box.Consumer(name, busTarget, outbox.Policy{
		MaxAttempts: config.Retries + 1, InitialDelay: config.InitialDelay, MaxDelay: config.MaxDelay, Backoff: config.Backoff,
		MaxAge: outbox.NoMaxAge,
	})
	if err != nil {
		return nil, failed("new bus", err)
	}
	b.sender, err = sender.New(l.box, consumer, sender.Config{
		Handlers: sender.Handlers{busKind: {Do: b.deliver}},
		Scope:    config.Scope, Slots: config.Slots, Batch: config.Batch, Lease: config.Lease, Poll: config.Poll, Drain: config.Drain,
		Listen: config.Listen, Notify: config.Notify, Name: config.Name,
	})
	if err != nil {
		return nil, failed("new bus", err)
	}
	return b, nil
}

// Subscribe lets a handler have the events of some types (none: all), in a transaction of the store together with its receipt: what it writes
// there is committed exactly once for each event. The name is stable: it is what the receipt is kept under, so a handler
// that is renamed has events again that are under way. Handlers of an event run one after the other, in the order in which they subscribed.
//
// A handler that answers with Reject is not asked again, and neither is one that succeeded. Any other error, and a panic, is tried again after a
// delay; then only the handlers run that have no receipt. What the handler does outside of tx may happen more than once.
func (b *Bus) Subscribe(name string, handler HandlerFunc, types ...string) error {
	return b.subscribe(subscriber{name: name, types: types, inTx: handler}, handler == nil)
}

// SubscribeBeside is Subscribe for a handler that runs outside of any transaction; its receipt is recorded after it succeeded. A crash in
// between makes it run again.
func (b *Bus) SubscribeBeside(name string, handler func(context.Context, Event) error, types ...string) error {
	return b.subscribe(subscriber{name: name, types: types, beside: handler}, handler == nil)
}

func (b *Bus) subscribe(s subscriber, isNil bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found refusal.Problems
	bounds.CheckRequired(s.name, bounds.Name-len(b.name)-1, found.On("name"))
	if slices.ContainsFunc(b.handlers, func(other subscriber) bool { return other.name == s.name }) {
		found.Add("name", "has subscribed before")
	}
	if isNil {
		found.Add("handler", "is nil")
	}
	for _, t := range s.types {
		bounds.CheckName(t, bounds.Name, found.On("types"))
	}
	if b.started {
		found.Add("handler", "comes after the bus has started: events may have passed it")
	}
	if err := found.Err(); err != nil {
		return failed("subscribe", err)
	}
	b.handlers = append(b.handlers, s)
	return nil
}

// Run delivers events until ctx ends, as sender.Sender.Run does, and adopts a restored stream before that. It blocks.
func (b *Bus) Run(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	if err := b.log.Adopt(bounded); err != nil && ctx.Err() == nil {
		b.log.box.Logger().WarnContext(ctx, "cannot see whether the stream was restored; going on", "error", err) // Append will
	}
	return b.Sender().Run(ctx)
}

// Sender is what runs the bus, for sender.RunAll and RunOnce; call Log.Adopt before. From now on nobody can subscribe.
func (b *Bus) Sender() *sender.Sender {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = true
	return b.sender
}

// scope is what a handler's receipts are kept under in the ledger.
func (b *Bus) scope(handler string) string { return b.name + ":" + handler }

// failures are the handlers of an event that have to be asked again.
type failures []failure

type failure struct{ handler, text string }

// Error names all handlers before it says what each answered, since the text that is kept is cut.
func (f failures) Error() string {
	var names, texts []string
	for _, one := range f {
		names = append(names, one.handler)
		text := one.text[:min(len(one.text), bounds.Reason/2/len(f))]
		texts = append(texts, one.handler+": "+strings.ToValidUTF8(text, ""))
	}
	return fmt.Sprintf("handlers failed (%d): %s; %s", len(f), strings.Join(names, ", "), strings.Join(texts, "; "))
}
