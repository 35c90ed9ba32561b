// Package tables has the rows of the core's tables as plain structs, so that tests can compare what stores of different kinds hold. Fields
// are the columns of schema/postgres; package memdb keeps its rows in them.
package tables

import "time"

// Forever stands for an instant that never comes in columns that look ahead (expires_at).
var Forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// States of a queue row.
const (
	Pending int16 = 0
	Parked  int16 = 1
)

// Message is the immutable envelope.
type Message struct {
	ID             int64
	SourcePosition int64
	MaxAge         int64
	CreatedAt      time.Time
	Priority       int16
	Tenant         string
	Consumer       string
	Target         string
	Kind           string
	Key            string
	OrderKey       string
	SourceEventID  string
	Digest         []byte
	Metadata       string
	Payload        []byte
}

// Queue is the row of an open message.
type Queue struct {
	MessageID    int64
	LeasedBy     int64
	Epoch        int64
	DueAt        time.Time
	BornAt       time.Time
	ExpiresAt    time.Time
	LeasedUntil  time.Time
	ReplayedAt   time.Time
	Attempt      int32
	AttemptLimit int32
	Replays      int32
	Priority     int16
	State        int16
	Unsure       bool
	Token        []byte
	Consumer     string
	Target       string
	Kind         string
	Tenant       string
	OrderKey     string
	LastError    string
}

// OrderLease is the live lease of an order key, or the dead message that blocks it.
type OrderLease struct {
	MessageID   int64
	LeasedUntil time.Time
	Blocked     bool
	Consumer    string
	Target      string
	Tenant      string
	OrderKey    string
}

// Settlement is the terminal record.
type Settlement struct {
	MessageID  int64
	Epoch      int64
	SettledBy  int64
	SettledAt  time.Time
	ReplayedAt time.Time
	Attempt    int32
	Replays    int32
	Outcome    string
	Cause      string
	Reason     string
	Result     string
}

// Worker is a running sender.
type Worker struct {
	ID        int64
	StartedAt time.Time
	SeenAt    time.Time
	Name      string
	Host      string
}

// Pause is a kill switch.
type Pause struct {
	PausedAt time.Time
	Mode     int16
	Consumer string
	Target   string
	Kind     string
	Tenant   string
	Actor    string
	Reason   string
}

// Audit is what an operator did.
type Audit struct {
	ID        int64
	MessageID int64
	At        time.Time
	Action    string
	Tenant    string
	Actor     string
	Reason    string
	Detail    string
}

// Event is a fact.
type Event struct {
	Position      int64
	TransactionID int64
	RecordedAt    time.Time
	Tenant        string
	Stream        string
	Type          string
	EventID       string
	Digest        []byte
	Metadata      string
	Payload       []byte
}

// Reader is how far a named reader of the stream came.
type Reader struct {
	TransactionID int64
	Position      int64
	SavedAt       time.Time
	Name          string
	Incarnation   string
	Digest        []byte
}

// Claim is a key of the ledger.
type Claim struct {
	Epoch     int64
	ClaimedAt time.Time
	HeldUntil time.Time
	EndedAt   time.Time
	State     int16
	Token     []byte
	Tenant    string
	Scope     string
	Key       string
	Digest    []byte
	Reason    string
	Result    []byte
}

// Credential is a named worker and what it is verified by.
type Credential struct {
	CreatedAt  time.Time
	RevokedAt  time.Time
	Iterations int32
	Name       string
	CreatedBy  string
	CreatedFor string
	RevokedBy  string
	RevokedFor string
	Salt       []byte
	Hash       []byte
}

// CredentialScope is a consumer and a tenant that a named worker is let in for.
type CredentialScope struct {
	Name     string
	Consumer string
	Tenant   string
}

// Batch is a job of many messages.
type Batch struct {
	ID               int64
	CreatedAt        time.Time
	SealedAt         time.Time
	CompletedAt      time.Time
	Run              int32
	CompletePriority int16
	Tenant           string
	Consumer         string
	Target           string
	Kind             string
	Key              string
	Digest           []byte
	CompleteConsumer string
	CompleteTarget   string
	CompleteKind     string
	CompleteKey      string
	CompleteDigest   []byte
	CompleteMetadata string
	CompletePayload  []byte
}

// BatchRow is what became of one row of a batch.
type BatchRow struct {
	BatchID   int64
	MessageID int64
	Number    int32
	Fate      int16
	Reason    string
}

// Dump is all that a store holds, each table in the order of its primary key.
type Dump struct {
	Now         time.Time // by the store's clock
	Messages    []Message
	Queue       []Queue
	OrderLeases []OrderLease
	Settlements []Settlement
	Workers     []Worker
	Pauses      []Pause
	Audits      []Audit
	Events      []Event
	Readers     []Reader
	Claims      []Claim
	Credentials []Credential
	Scopes      []CredentialScope
	Batches     []Batch
	BatchRows   []BatchRow
}
