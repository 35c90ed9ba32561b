package natspub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// DefaultTimeout is how long a publisher waits for the stream's acknowledgement unless Config.Timeout says otherwise.
const DefaultTimeout = 5 * time.Second

const (
	shortestTimeout = 10 * time.Millisecond
	longestTimeout  = time.Hour
)

// Config of a Publisher. The zero Config is a good one where targets are subjects.
type Config struct {
	// Subject is where every message goes. Default: the message's Target, or what SubjectOf says.
	Subject string
	// SubjectOf gives the subject of a message. Its error is the outcome of the attempt, as that of a handler. Not beside Subject.
	SubjectOf func(outbox.Message) (string, error)
	// Timeout bounds an attempt, from the request to the acknowledgement. Default DefaultTimeout, between 10 ms and 1 h.
	Timeout time.Duration
	// NoStream is what it means that no stream takes the subject, or that none of its servers is up: nothing was stored. Default
	// outbox.VerdictUnavailable, which spends no attempt and holds the message's lane back behind one probe at a time. Where SubjectOf sends a lane to several
	// streams, one that is missing would hold the others up: there it should be outbox.VerdictFailed, or outbox.VerdictPermanent.
	NoStream outbox.Verdict
	// UnknownOnTimeout makes an attempt outbox.Unknown that was sent and not acknowledged, for lack of time or since the connection broke. Then the
	// kind should have a Reconcile, without which such messages are parked. Default: it is tried again, since the stream drops what it has.
	UnknownOnTimeout bool
}

// A Publisher publishes messages. Its methods may be called from several goroutines at once.
type Publisher struct {
	js     jetstream.JetStream
	config Config
}

// New makes a Publisher on a connection of the caller's, reporting every problem of the config at once as outbox.ErrInvalid.
//
// The connection should reconnect for ever (nats.MaxReconnects(-1)): once it is closed, every message is outbox.Unavailable.
func New(js jetstream.JetStream, config Config) (*Publisher, error) {
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	config.NoStream = cmp.Or(config.NoStream, outbox.VerdictUnavailable)
	var found []error
	refuse := func(field, format string, args ...any) {
		found = append(found, &outbox.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if js == nil {
		refuse("js", "is nil")
	}
	if config.Subject != "" {
		if problem := subjectProblem(config.Subject); problem != "" {
			refuse("Subject", "%s", problem)
		}
		if config.SubjectOf != nil {
			refuse("SubjectOf", "is set beside Subject")
		}
	}
	if config.Timeout < shortestTimeout || config.Timeout > longestTimeout {
		refuse("Timeout", "is %v, not between %v and %v", config.Timeout, shortestTimeout, longestTimeout)
	}
	if marks[config.NoStream] == nil {
		refuse("NoStream", "is %v, not unavailable, failed or permanent", config.NoStream)
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("natspub: new: %w", errors.Join(found...))
	}
	return &Publisher{js, config}, nil
}

var marks = map[outbox.Verdict]func(error) error{
	outbox.VerdictUnavailable: outbox.Unavailable,
	outbox.VerdictFailed:      func(err error) error { return err },
	outbox.VerdictPermanent:   outbox.Permanent,
}

// Handler is Publish as a handler of a sender, whose result is the acknowledgement.
func (p *Publisher) Handler() sender.Handler {
	return sender.Handler{DoResult: func(ctx context.Context, m outbox.Message) (string, error) {
		ack, err := p.Publish(ctx, m)
		if err != nil {
			return "", err
		}
		result := fmt.Sprintf("stream=%s sequence=%d", ack.Stream, ack.Sequence)
		if ack.Duplicate {
			result += " duplicate=true"
		}
		return result, nil
	}}
}

// Publish publishes a message's payload and waits until the stream has stored it.
//
//	acknowledged                                     delivered: stream=ORDERS sequence=17
//	acknowledged as one that the stream has already  delivered: stream=ORDERS sequence=17 duplicate=true
//	not connected, or draining                       outbox.Unavailable; nothing was sent
//	no stream takes the subject, or none is up       what Config.NoStream says, by default outbox.Unavailable; nothing was stored
//	larger than the server or the stream takes       outbox.Permanent
//	no subject to publish to (outbox.ErrInvalid)     outbox.Permanent
//	refused by the stream for any other reason       an ordinary failure: it is full, sealed, short of resources, without a leader
//	no right to publish to the subject               as the next: the server does not answer; the reason says so
//	sent, and not acknowledged in time               an ordinary failure, or outbox.Unknown if Config.UnknownOnTimeout says so
//	the sender ended the context                     its error: the sender knows what for
func (p *Publisher) Publish(ctx context.Context, m outbox.Message) (*jetstream.PubAck, error) {
	subject, err := p.subject(m)
	if err != nil {
		return nil, err
	}
	conn := p.js.Conn()
	if status := conn.Status(); status != nats.CONNECTED { // a client that reconnects would keep the message and send it some time later
		return nil, outbox.Unavailable(fmt.Errorf("natspub: the connection is %v: %w", status, cmp.Or(conn.LastError(), nats.ErrDisconnected)))
	}
	bounded, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	ack, err := p.js.PublishMsg(bounded, &nats.Msg{Subject: subject, Header: header(m), Data: m.Payload})
	if err != nil {
		return nil, p.outcome(ctx, subject, err)
	}
	return ack, nil
}
