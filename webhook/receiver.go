package webhook

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/ledger"
)

const (
	// Replayed is a header of every answer that was stored before.
	Replayed = "Idempotency-Replayed"
	// DefaultMaxBody is the largest body in bytes unless ReceiverConfig.MaxBody says otherwise.
	DefaultMaxBody = 1 << 20
	// DefaultRecordTimeout bounds the transaction unless ReceiverConfig.RecordTimeout says otherwise.
	DefaultRecordTimeout = 10 * time.Second
)

// An Origin is somebody who sends webhooks here.
type Origin struct {
	// Tenant may be empty. At most 128 bytes.
	Tenant string
	// Source names who sends; ids are unique within it. It is the scope of the ledger's keys. At most 128 bytes.
	Source string
	// Secrets verify: one, or during a rotation the new one and the old. At most 8.
	Secrets []Secret
}

// An OriginFunc says whose webhook a request claims to be, by its path or host, and never by its body, which it must not read. ErrUnknownOrigin is answered
// with 401, any other error with 503.
type OriginFunc func(*http.Request) (Origin, error)

// From expects every webhook from one origin. The error is outbox.ErrInvalid.
func From(origin Origin) (OriginFunc, error) {
	var found refusal.Problems
	bounds.CheckOptionalName(origin.Tenant, bounds.Name, found.On("Tenant"))
	bounds.CheckRequired(origin.Source, bounds.Name, found.On("Source"))
	checkSecrets(&found, origin.Secrets, false)
	if err := found.Err(); err != nil {
		return nil, failed("origin", err)
	}
	origin.Secrets = slices.Clone(origin.Secrets)
	return func(*http.Request) (Origin, error) { return origin, nil }, nil
}

// A Delivery is a webhook that was verified, and did not come before.
type Delivery struct {
	Tenant, Source string
	Signed
	// Header is the request's. Beside the three of the specification nothing vouches for it.
	Header http.Header
	// Body is what was signed, byte for byte.
	Body []byte
	// Answer is what the sender is told, now and when he sends the same again; a Record may set it. By default 204.
	Answer Answer

	recorded  bool // the claim was made, and Record called
	committed []func()
}

// OnCommit has a function called once the transaction has committed, such as Committed of an outbox.Receipt: without it a sender finds an effect at its
// next poll.
func (d *Delivery) OnCommit(do func()) { d.committed = append(d.committed, do) }

// An Answer is stored with the claim.
type Answer struct {
	// Status lies between 200 and 499. Default 204, or 200 with a Body. Where a webhook is to come again a Record returns an error instead.
	Status      int    `json:"status"`
	ContentType string `json:"type,omitempty"`
	// Body, in base64, must fit into the ledger's MaxResult.
	Body []byte `json:"body,omitempty"`
}

// A Record records a webhook in a transaction: as an event (events.Log.Append), as an effect (outbox.Box.Enqueue), or in tables of the program's own, through
// the driver's way into the transaction (pgxdb.EventHandler and its like fit). The claim of the id, and its end, are in that transaction too, so
// that all of it is committed once, or none. An error or a panic rolls back, and the webhook may come again. It may run again by itself when the database
// asks for that (db.ErrRetry), so it does nothing outside of the transaction; its context does not end when the client goes away.
type Record func(ctx context.Context, tx db.Tx, d *Delivery) error

// ReceiverConfig of a Receiver. The zero ReceiverConfig is a good one.
type ReceiverConfig struct {
	// Tolerance is how far a signature's time may lie from this host's clock, either way. Default DefaultTolerance, between 1 s and 24 h.
	Tolerance time.Duration
	// MaxBody is the largest body in bytes. Default DefaultMaxBody.
	MaxBody int64
	// RecordTimeout bounds the transaction, with its waiting for another that has the same id. Default DefaultRecordTimeout, between 100 ms and 1 h.
	RecordTimeout time.Duration
}

// A Receiver serves webhooks: see the package. It logs through its ledger's box.
type Receiver struct {
	ledger *ledger.Ledger
	from   OriginFunc
	record Record
	config ReceiverConfig
}

// NewReceiver makes a Receiver over a ledger, reporting every problem at once as outbox.ErrInvalid. It sends no statement.
func NewReceiver(l *ledger.Ledger, from OriginFunc, record Record, config ReceiverConfig) (*Receiver, error) {
	var found refusal.Problems
	if l == nil {
		found.Add("ledger", "is nil")
	}
	if from == nil {
		found.Add("from", "is nil")
	}
	if record == nil {
		found.Add("record", "is nil")
	}
	config.Tolerance = checkTolerance(&found, "Tolerance", config.Tolerance)
	config.MaxBody = cmp.Or(config.MaxBody, DefaultMaxBody)
	if config.MaxBody < 0 {
		found.Addf("MaxBody", "is %d", config.MaxBody)
	}
	config.RecordTimeout = cmp.Or(config.RecordTimeout, DefaultRecordTimeout)
	found.Lasting("RecordTimeout", config.RecordTimeout, 100*time.Millisecond, time.Hour)
	if err := found.Err(); err != nil {
		return nil, failed("new", err)
	}
	return &Receiver{l, from, record, config}, nil
}
