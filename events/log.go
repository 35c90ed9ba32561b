package events

import (
	"context"
	"slices"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// Config of a Log. The zero Config is a good one: events without subscriptions.
type Config struct {
	// Subscriptions derive effects from events as they are appended. Every process that appends must have the same.
	Subscriptions []Subscription
	// Decoders read the payloads of events, by type: see SourceAs.
	Decoders []Decoder
	// MaxPayload is the largest payload in bytes. Default outbox.DefaultMaxPayload, at most 1 MiB.
	MaxPayload int
}

// A Log appends events, derives effects from them, and reads them back. It keeps no goroutine and holds no connection; its methods may be called
// from several goroutines at once.
type Log struct {
	box           *outbox.Box
	store         db.Store
	subscriptions []Subscription
	decoders      map[string]Decoder
	maxPayload    int
}

// New makes a Log over a box, reporting every problem of the Config at once as outbox.ErrInvalid. It sends no statement.
func New(box *outbox.Box, config Config) (*Log, error) {
	var found refusal.Problems
	if box == nil {
		found.Add("box", "is nil")
	}
	l := &Log{box: box, subscriptions: slices.Clone(config.Subscriptions), decoders: map[string]Decoder{}, maxPayload: config.MaxPayload}
	if l.maxPayload == 0 {
		l.maxPayload = outbox.DefaultMaxPayload
	}
	found.Between("MaxPayload", l.maxPayload, 1, bounds.LargestPayload)
	names := map[string]bool{}
	for i, s := range l.subscriptions {
		s.check(found.At(i))
		if names[s.Name] {
			found.Add("Subscriptions.Name", "is there twice")
		}
		names[s.Name] = true
	}
	for i, d := range config.Decoders {
		if d.decode == nil {
			found.At(i).Add("Decoders", "is not made by DecoderOf")
		} else if _, twice := l.decoders[d.eventType]; twice {
			found.At(i).Add("Decoders", "has its type twice")
		}
		l.decoders[d.eventType] = d
	}
	if err := found.Err(); err != nil {
		return nil, failed("new", err)
	}
	l.store = box.Store()
	return l, nil
}

// Box is what the log was made over.
func (l *Log) Box() *outbox.Box { return l.box }

// Adopt makes a stream that was restored from a dump this server's own, if it is not yet: a new incarnation, in which cursors of the original are
// unknown. Call it when a process starts that appends; then Append needs no connection beside its caller's. Whoever comes first does
// it: Bus.Run, Read, End and a Feed with followers do so too, and Append itself where nobody has. One statement, which writes nothing to
// a stream that is this server's. Retryable.
func (l *Log) Adopt(ctx context.Context) error {
	_, err := l.store.AdoptStream(ctx)
	return failed("adopt", err)
}

// subscription finds one by its name.
func (l *Log) subscription(name string) (Subscription, bool) {
	at := slices.IndexFunc(l.subscriptions, func(s Subscription) bool { return s.Name == name })
	if at < 0 {
		return Subscription{}, false
	}
	return l.subscriptions[at], true
}
