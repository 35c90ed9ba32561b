package sender

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/tables"
	"github.com/fencepost-go/fencepost/outbox"
)

// A bench is a box over a store in memory, with one consumer, in a bubble of synctest: its clock moves when everybody waits.
type bench struct {
	*testing.T
	store    *memdb.Store
	box      *outbox.Box
	consumer *outbox.Consumer
	log      *logged
	mu       sync.Mutex
	calls    []string
	fail     map[string]error
}

// inBubble runs a test on a bench.
func inBubble(t *testing.T, policy outbox.Policy, test func(*bench)) {
	t.Helper()
	inBubbleOver(t, memdb.Config{}, policy, test)
}

func inBubbleOver(t *testing.T, config memdb.Config, policy outbox.Policy, test func(*bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: memdb.New(config), log: &logged{}, fail: map[string]error{}}
		b.store.Hook(memdb.Hook{Before: b.before})
		var err error
		if b.box, err = outbox.New(b.store, outbox.Config{Logger: b.log.logger()}); err != nil {
			t.Fatal(err)
		}
		if b.consumer, err = b.box.Consumer("wallets", "ledger", policy); err != nil {
			t.Fatal(err)
		}
		test(b)
	})
}

// observe gives the bench a box with an observer.
func (b *bench) observe(observer *outbox.Observer) {
	b.Helper()
	b.open(outbox.Config{Logger: b.log.logger(), Observer: observer})
}

// open gives the bench a box of that configuration.
func (b *bench) open(config outbox.Config) {
	b.Helper()
	var err error
	if b.box, err = outbox.New(b.store, config); err != nil {
		b.Fatal(err)
	}
	if b.consumer, err = b.box.Consumer("wallets", "ledger", b.consumer.Policy()); err != nil {
		b.Fatal(err)
	}
}

// before counts calls, and fails those that the test wants to fail.
func (b *bench) before(_ context.Context, call memdb.Call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if call.Operation == "Commit" || call.Operation == "Enqueue" || call.Operation == "Listen" {
		return nil
	}
	b.calls = append(b.calls, call.Operation)
	if err := b.fail[call.Operation]; err != nil {
		return err
	}
	return b.fail["*"]
}

// failing makes calls of an operation, * for all, fail until it is called with nil.
func (b *bench) failing(operation string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail[operation] = err
}

// took gives the operations called since it was last called.
func (b *bench) took() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

// called counts the calls of an operation since took was last called.
func (b *bench) called(operation string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, call := range b.calls {
		if call == operation {
			n++
		}
	}
	return n
}

func (b *bench) sender(config Config) *Sender {
	b.Helper()
	if config.Name == "" {
		config.Name = "bench"
	}
	s, err := New(b.box, b.consumer, config)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// run runs a sender until stop, which gives what Run returned.
func (b *bench) run(s *Sender) (stop func() error) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

func (b *bench) runOnce(s *Sender) Counts {
	b.Helper()
	counts, err := s.RunOnce(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return counts
}

// effect is a valid effect of the bench's consumer.
func effect(key string, change ...func(*outbox.Effect)) outbox.Effect {
	e := outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: key}
	for _, c := range change {
		c(&e)
	}
	return e
}

func (b *bench) enqueue(effects ...outbox.Effect) []int64 {
	b.Helper()
	var ids []int64
	err := memdb.InTx(b.Context(), b.store, b.box, func(tx *memdb.Tx) error {
		receipts, err := b.box.EnqueueMany(b.Context(), tx, effects)
		for _, receipt := range receipts {
			ids = append(ids, receipt.ID)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

// row is the queue row of an open message.
func (b *bench) row(id int64) tables.Queue {
	b.Helper()
	for _, q := range b.store.Dump().Queue {
		if q.MessageID == id {
			return q
		}
	}
	b.Fatalf("message %d is not open", id)
	return tables.Queue{}
}

// outcomes are the outcomes of settled messages, by id.
func (b *bench) outcomes() map[int64]string {
	outcomes := map[int64]string{}
	for _, s := range b.store.Dump().Settlements {
		outcomes[s.MessageID] = s.Outcome
	}
	return outcomes
}

// pause pauses everything.
func (b *bench) pause(mode outbox.PauseMode) {
	b.Helper()
	everything := outbox.LanePattern{Consumer: outbox.Any, Target: outbox.Any, Kind: outbox.Any, Tenant: outbox.Any}
	if _, err := b.box.Pause(b.Context(), outbox.AllTenants, everything, mode, outbox.By{Actor: "op", Reason: "test"}); err != nil {
		b.Fatal(err)
	}
}

// leased counts messages under a lease, be it over.
func (b *bench) leased() int {
	n := 0
	for _, q := range b.store.Dump().Queue {
		if !bytes.Equal(q.Token, db.FreeToken) {
			n++
		}
	}
	return n
}

// live counts messages under a lease that is not over.
func (b *bench) live() int {
	n := 0
	for _, q := range b.store.Dump().Queue {
		if q.LeasedUntil.After(time.Now()) {
			n++
		}
	}
	return n
}

func doing(do func(context.Context, outbox.Message) error) Handlers {
	return Handlers{"charge": {Do: do}}
}

func succeed(context.Context, outbox.Message) error { return nil }

// A journal is what handlers were called with.
type journal struct {
	mu   sync.Mutex
	keys []string
}

func (j *journal) note(m outbox.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keys = append(j.keys, m.Key)
}

func (j *journal) list() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.keys)
}

// logged keeps what is logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) lines(containing string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, containing) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wait lets time pass in the bubble. It is no sleep that stands for an event: everything due until then has happened when it returns.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
