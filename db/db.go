// Package db is the seam between fencepost and a database: the operations a store offers, in the words of the design, and nothing of how a
// driver runs them. It imports the standard library alone.
//
// The operations, their parameters and their rows follow from the statements in queries/ (see store_gen.go). Durations are microseconds.
// Ids of one call are rising and distinct; arrays of one call have one length; outbox sees to both. A driver turns its own errors into
// the sentinels below and keeps the cause reachable through errors.As.
package db

import (
	"context"
	"errors"
	"time"
)

// A Store runs every operation. Methods that take a Tx run in the caller's transaction; all others run each in a transaction of their own, and a
// driver repeats those a bounded number of times when the server refuses them for a serialization failure or a deadlock.
// All methods may be called from several goroutines at once.
type Store interface {
	Enqueuer
	Leaser
	Settler
	Operator
	Purger
	Inspector
	Worker
	Doctor
	Appender
	Streamer
	Claimer
	Batcher
	Notifier
	Transactor

	// SchemaRange gives the oldest and the newest version of the schema that this driver's statements work with.
	SchemaRange() (oldest, newest int64)
	// Schema is the name of the schema, for messages.
	Schema() string
}

// A Notifier carries hints that messages were committed. No hint is a promise: they may be lost, repeated and late.
type Notifier interface {
	// Wake sends one hint to every listener of this store's schema.
	Wake(ctx context.Context) error
	// Listen calls woken for each hint, and once after each (re)connect, since hints may have been lost meanwhile. It blocks until ctx ends
	// or the connection breaks, and returns ErrNoListener when no connection to listen on was configured. Listen tests its own channel
	// before the first call of woken and returns ErrDeafListener when its own hint does not come back (a transaction pooler in between).
	// woken must not block.
	Listen(ctx context.Context, woken func()) error
}

// A Transactor runs functions in transactions that the store begins.
type Transactor interface {
	// Transact begins a transaction at READ COMMITTED, runs fn, and commits; an error or a panic of fn rolls back. tx works with this store's
	// methods and with the driver's way to reach it (pgxdb.EventHandler and its like), for as long as fn runs. Errors are those of fn, or of the
	// commit; of a commit whose answer is lost nobody knows whether it happened. ErrRetry comes before the error when the whole may run again.
	Transact(ctx context.Context, fn func(tx Tx) error) error
	// Connections is how many transactions of the store can be open at once, 0 when more than that only wait.
	Connections() int
	// OneWriter says that a transaction which writes keeps all others of the database that write waiting.
	OneWriter() bool
}

// A Tx is a caller's open transaction, made by the driver that knows it (pgxdb.Tx, sqldb.Tx, or the BoxTx of their InTx). A pool or a plain
// transaction of another library does not satisfy it.
type Tx interface {
	// FencepostTx marks the type and does nothing.
	FencepostTx()
}

// A Gatherer is a Tx that wants to know what was enqueued through it.
type Gatherer interface {
	Tx
	// Gather is called with the ids of newly stored messages after each successful enqueue.
	Gather(ids []int64)
}

// A Committer is told which messages a transaction stored, after its commit. *outbox.Box is one. Committed never blocks.
type Committer interface {
	Committed(ids ...int64)
}

// Errors that every driver returns in place of its own.
var (
	// ErrForeignTx: the Tx was made by another driver, is nil, or is on another file of SQLite than the store. Not retryable.
	ErrForeignTx = errors.New("transaction does not belong to this driver")
	// ErrRetry: the server refused the statement for a serialization failure or a deadlock (SQLSTATE 40001, 40P01). In the caller's
	// transaction: roll back and run the whole transaction again. In a transaction of the store's own: its bounded repeats were used up.
	ErrRetry = errors.New("serialization failure or deadlock")
	// ErrTimeout: the server ended the statement or its transaction for a timeout, or for a cancel request (SQLSTATE 57014, 55P03, 25P04).
	// Retryable; a statement over many rows better with fewer.
	ErrTimeout = errors.New("the server ended the statement early")
	// ErrEncoding: the connection's client_encoding is not UTF8, so that the server would store text as other characters; it was sent nothing.
	// Not retryable before the connection string or the role's default is mended.
	ErrEncoding = errors.New("client_encoding is not UTF8")
	// ErrNoListener: listening was not configured. Not retryable.
	ErrNoListener = errors.New("no connection to listen on is configured")
	// ErrDeafListener: hints do not arrive on the listening connection, as behind a transaction pooler. Retry later, rely on the poll.
	ErrDeafListener = errors.New("the listening connection receives nothing")
	// ErrNoSchema: the tables are missing (SQLSTATE 42P01, 3F000). Not retryable before a migration.
	ErrNoSchema = errors.New("schema is not installed")
	// ErrDenied: the server lets this role not connect, not to this database, or not do this (SQLSTATE 28000, 28P01, 3D000, 42501), or the file
	// of SQLite cannot be opened or written, or is none, or its handle lacks a setting that the store needs. Not retryable before somebody grants
	// it or corrects the connection string.
	ErrDenied = errors.New("access denied")
)

// Never stands for an instant that has not come in columns that look back (leased_until, replayed_at).
var Never = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)

// LongestLease bounds every lease, for every process alike: a leased_until further ahead than this counts as over (a clock that stepped back).
const LongestLease = time.Hour

// TokenSize is the length of a lease's token in bytes. Statements over several messages take their tokens one after the other, without anything between.
const TokenSize = 16

// FreeToken is the token of a message that nobody holds.
var FreeToken = make([]byte, TokenSize)

// Standings of a place in the stream of events.
const (
	StandingGood     = 0 // the stream goes on there
	StandingUnknown  = 1 // no such place in this incarnation
	StandingExpired  = 2 // what followed it was purged
	StandingRestored = 3 // the tables come out of a dump: AdoptStream
)

// States of a claim.
const (
	ClaimHeld      = 0
	ClaimCompleted = 1
	ClaimFailed    = 2 // free to be claimed again
	ClaimRejected  = 3
)

// Fates of the rows of a batch.
const (
	RowOpen      = 0
	RowDelivered = 1
	RowDead      = 2
	RowCancelled = 3
	RowExpired   = 4
	RowRejected  = 5 // before it became a message

	AnyFate = -1 // for ListBatchRows
)

// Fates of the rows that LeaseDue returns.
const (
	FateRefused = 0 // its order key is leased or blocked
	FateGranted = 1
	FateBuried  = 2 // settled as dead: spent or too old
	FateClosing = 3 // the closing row: due_at is the statement's now()
	FateBound   = 4 // the lane was examined up to (due_at, id) without filling its quota
)

// FirstPriority stands before every priority where a listing of lanes starts.
const FirstPriority = -32769

// The versions of the schema that the statements in queries/ work with: from OldestSchema on, up to NewestSchema, which is the newest that this
// release knows, and beyond it all below RefusedSchema. A migration below that number only adds: what older releases read and write is still
// there and means the same, so that they may run beside newer ones, as in a rolling upgrade. One that does more takes the next round hundred.
const (
	OldestSchema  = 5
	NewestSchema  = 5
	RefusedSchema = 100
)
