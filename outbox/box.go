package outbox

import (
	"log/slog"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
)

// Bounds. Each stands in the schema as a CHECK too.
const (
	// DefaultMaxPayload is the largest payload in bytes unless Config.MaxPayload says otherwise.
	DefaultMaxPayload = 64 << 10

	maxAttempts  = 10_000
	maxBatch     = 1_000 // rows of one statement, and what one operator call may touch
	maxName      = bounds.Name
	maxKey       = bounds.Key
	maxReason    = bounds.Reason
	maxLastError = 256
)

// Config of a Box. The zero Config is a good one.
type Config struct {
	// Policy fills the zero fields of every consumer's policy. Its MaxAge is also the age of effects that give none. Defaults: see Policy.
	Policy Policy
	// MaxPayload is the largest payload in bytes. Default DefaultMaxPayload, at most 1 MiB.
	MaxPayload int
	// Kinds, when set, are the only kinds Enqueue accepts.
	Kinds []string
	// RequireCredential refuses to lease without the Identity of a verified Credential: ErrUnidentified, before any statement.
	RequireCredential bool
	// Redact rewrites error texts and handler results before they are stored and logged, to take secrets out. If it panics or ends its
	// goroutine, the text is not stored. An Observer sees an Outcome as the handler gave it.
	Redact func(text string) string
	// Observer is told what happens. Nil is off.
	Observer *Observer
	// Logger gets one record at WARN for each dead letter, and for application code that was contained. What its handler does cannot harm the
	// caller. Default slog.Default().
	Logger *slog.Logger
}

// A Box enqueues effects and hands out, settles and manages the messages they become. It keeps no goroutine and holds no connection;
// its methods may be called from several goroutines at once. It implements db.Committer.
type Box struct {
	store      db.Store
	policy     Policy
	maxPayload int
	kinds      []string // none: any
	redact     func(string) string
	observer   *Observer
	log        *slog.Logger
	committed  flags
	handOffs   handOffs

	requireCredential bool
}

var _ db.Committer = (*Box)(nil)

// New makes a Box over a store, reporting every problem of the Config at once as ErrInvalid. It sends no statement: CheckSchema does.
func New(store db.Store, config Config) (*Box, error) {
	var found problems
	if store == nil {
		found.add("store", "is nil")
	}
	policy := config.Policy.or(defaultPolicy)
	policy.check(&found)
	maxPayload := first(config.MaxPayload, DefaultMaxPayload)
	if maxPayload < 1 || maxPayload > bounds.LargestPayload {
		found.addf("MaxPayload", "is %d, not between 1 and %d bytes", config.MaxPayload, bounds.LargestPayload)
	}
	found.kinds(config.Kinds)
	kinds := distinct(config.Kinds)
	if len(kinds) != len(config.Kinds) {
		found.add("Kinds", "names a kind twice")
	}
	if err := found.err(); err != nil {
		return nil, failed("new", err)
	}
	observer := Observers(config.Observer)
	logger := config.Logger
	if logger == nil {
		logger = slog.Default()
	}
	return &Box{
		store:      store,
		policy:     policy,
		maxPayload: maxPayload,
		kinds:      kinds,
		redact:     config.Redact,
		observer:   observer,
		log:        slog.New(guardedLog{logger.Handler(), observer}),
		committed:  flags{all: map[chan struct{}]struct{}{}},

		requireCredential: config.RequireCredential,
	}, nil
}

// Observer is the box's observer made safe to call: no field is nil and no panic comes through. The sender reports through it.
func (b *Box) Observer() *Observer { return b.observer }

// Logger is the box's logger made safe to call, never nil. The sender logs through it.
func (b *Box) Logger() *slog.Logger { return b.log }

// Redacted is an error text as a settlement keeps it: what Config.Redact makes of it, fit to be stored and logged, at most 4 KiB. The sender
// logs through it.
func (b *Box) Redacted(text string) string { return b.reason(text, maxReason) }

// Store is what the box was made over.
func (b *Box) Store() db.Store { return b.store }

// distinct sorts a copy bytewise and drops repeats.
func distinct[T interface{ ~string | ~int64 }](values []T) []T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
