// Package memdb is a db.Store in memory, for tests of what stands on a store. It is not a mock: it keeps the tables of the schema with their
// CHECK constraints and does what the statements in queries/ do, and it passes the same conformance suite as the drivers.
//
// One mutex makes every operation atomic, and none starts a goroutine. The clock is time.Now in microseconds, read once an operation, so in a
// bubble of testing/synctest the fake clock drives leases and due times.
package memdb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Config of a Store.
type Config struct {
	// Version is what ReadVersion reports; 0 = the version the store works with.
	Version int64
	// Role is what CheckRole reports; nil = a role that may do what a sender needs and nothing more.
	Role *db.CheckRoleRow
}

// Store is a db.Store in memory.
type Store struct {
	config Config
	hook   atomic.Pointer[Hook]

	mu          sync.Mutex
	messages    table[int64, tables.Message]
	queue       table[int64, tables.Queue]
	orderLeases table[orderKey, tables.OrderLease]
	settlements table[int64, tables.Settlement]
	workers     table[int64, tables.Worker]
	pauses      table[laneName, tables.Pause]
	audits      table[int64, tables.Audit]
	events      table[int64, tables.Event]
	readers     table[string, tables.Reader]
	claims      table[claimKey, tables.Claim]
	credentials table[string, tables.Credential]
	scopes      table[tables.CredentialScope, tables.CredentialScope]
	batches     table[int64, tables.Batch]
	batchRows   table[rowKey, tables.BatchRow]
	rowOf       map[int64]rowKey   // by message
	extents     map[int64]extent   // by batch
	purged      tables.Event       // the last one that retention removed
	locks       map[any]*Tx        // rows that open transactions wrote, by claimKey, eventKey, readerKey, rowKey or rowMessage
	keys        map[identity]claim // committed ones and those of open transactions
	open        map[*Tx]struct{}
	listeners   map[*listener]struct{}
	lastMessage int64
	lastWorker  int64
	lastAudit   int64
	lastEvent   int64
	lastBatch   int64
	lastTx      int64 // the number of the transaction that came last to write an event
}

var _ db.Store = (*Store)(nil)

// New returns an empty store.
func New(config Config) *Store {
	return &Store{
		config:      config,
		messages:    newTable("message", messageChecks, func(m tables.Message) int64 { return m.ID }),
		queue:       newTable("queue", queueChecks, func(q tables.Queue) int64 { return q.MessageID }),
		orderLeases: newTable("order_lease", orderLeaseChecks, keyOfLease),
		settlements: newTable("settlement", settlementChecks, func(s tables.Settlement) int64 { return s.MessageID }),
		workers:     newTable("worker", workerChecks, func(w tables.Worker) int64 { return w.ID }),
		pauses:      newTable("pause", pauseChecks, laneOfPause),
		audits:      newTable("audit", auditChecks, func(a tables.Audit) int64 { return a.ID }),
		events:      newTable("event", eventChecks, func(e tables.Event) int64 { return e.Position }),
		readers:     newTable("reader", readerChecks, func(r tables.Reader) string { return r.Name }),
		claims:      newTable("claim", claimChecks, keyOfClaim),
		credentials: newTable("credential", credentialChecks, func(c tables.Credential) string { return c.Name }),
		scopes:      newTable("credential_scope", scopeChecks, func(s tables.CredentialScope) tables.CredentialScope { return s }),
		batches:     newTable("batch", batchChecks, func(b tables.Batch) int64 { return b.ID }),
		batchRows:   newTable("batch_row", batchRowChecks, keyOfRow),
		rowOf:       map[int64]rowKey{},
		extents:     map[int64]extent{},
		locks:       map[any]*Tx{},
		keys:        map[identity]claim{},
		open:        map[*Tx]struct{}{},
		listeners:   map[*listener]struct{}{},
	}
}

// SchemaRange implements db.Store.
func (s *Store) SchemaRange() (oldest, newest int64) { return db.OldestSchema, db.NewestSchema }

// Schema implements db.Store.
func (s *Store) Schema() string { return "outbox" }

// A Call is one operation on its way through the store.
type Call struct {
	Operation string // the method's name, such as LeaseDue
	Params    any    // its params struct, such as db.LeaseDueParams; nil when it has none
}

// A Hook stands around every operation, Wake, Listen and the Commit of a Tx included, to inject faults and pauses. Its functions run without the store's lock, so
// they may block and may use the store.
type Hook struct {
	// Before runs first; its error is returned in place of running the operation.
	Before func(context.Context, Call) error
	// After runs last, with the operation's error, and decides what the caller sees: an error although all was done, as after a timeout.
	After func(context.Context, Call, error) error
}

// Hook puts the hook in place of the one before; Hook{} removes it.
func (s *Store) Hook(hook Hook) { s.hook.Store(&hook) }

// hooked runs the operation between the functions of the hook.
func hooked[R any](ctx context.Context, s *Store, call Call, operation func() ([]R, error)) ([]R, error) {
	hook := s.hook.Load()
	if hook == nil {
		hook = &Hook{}
	}
	if hook.Before != nil {
		if err := hook.Before(ctx, call); err != nil {
			return nil, err
		}
	}
	rows, err := operation()
	if hook.After != nil {
		err = hook.After(ctx, call, err)
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// run runs an operation as one transaction of the store's own: all of it, or after an error nothing.
func run[R any](ctx context.Context, s *Store, name string, params any, operation func(*statement) []R) ([]R, error) {
	return hooked(ctx, s, Call{name, params}, func() ([]R, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		st := &statement{Store: s, now: clock()}
		rows := operation(st)
		if st.err != nil {
			st.rollback()
			return nil, st.err
		}
		return rows, nil
	})
}

// clock reads the time at the resolution of a timestamptz.
func clock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// after returns the instant so many microseconds later. Instants that no timestamptz can hold become one that no CHECK lets through.
func after(t time.Time, microseconds int64) time.Time {
	sum := t.UnixMicro() + microseconds
	if microseconds > 0 && sum < t.UnixMicro() {
		return time.Date(294276, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	return time.UnixMicro(sum).UTC()
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
