package kafkapub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish"
	"github.com/fencepost-go/fencepost/sender"
)

// DefaultTimeout is how long a publisher waits for a record to be stored unless Config.Timeout says otherwise.
const DefaultTimeout = 10 * time.Second

const (
	shortestTimeout = 10 * time.Millisecond
	longestTimeout  = time.Hour
)

// Config of a Publisher. The zero Config is a good one where targets are topics.
type Config struct {
	// Topic is where every message goes. Default: the message's Target, or what TopicOf says.
	Topic string
	// TopicOf gives the topic of a message. Its error is the outcome of the attempt, as that of a handler. Not beside Topic.
	TopicOf func(outbox.Message) (string, error)
	// RecordKey gives the key of the record, which chooses its partition and, in a compacted topic, what it replaces. Default: the message's
	// OrderKey, or else its Key; neither is qualified by the tenant.
	RecordKey func(outbox.Message) []byte
	// Timeout bounds an attempt. Default DefaultTimeout, between 10 ms and 1 h.
	Timeout time.Duration
	// NoTopic is what it means that the cluster does not know the topic: nothing was stored. Default outbox.VerdictUnavailable, which spends no attempt and
	// holds the message's lane back behind one probe at a time. Where TopicOf sends a lane to several topics, one that is missing would hold the others
	// up: there it should be outbox.VerdictFailed, or outbox.VerdictPermanent.
	NoTopic outbox.Verdict
	// UnknownOnTimeout makes an attempt outbox.Unknown whose record was not answered and may be stored yet. Then the kind should have a Reconcile,
	// without which such messages are parked. Default: it is tried again.
	UnknownOnTimeout bool
}

// A Publisher publishes messages. Its methods may be called from several goroutines at once.
type Publisher struct {
	client *kgo.Client
	config Config

	mu       sync.Mutex
	flights  map[identity]*flight // those that were not answered in time
	doubtful bool                 // the last record was not
}

// New makes a Publisher on a client of the caller's, reporting every problem of the config and the client at once as outbox.ErrInvalid.
//
// The client is made without DisableIdempotentWrite, AllowIdempotentProduceCancellation, ManualFlushing, DefaultProduceTopicAlways and a
// TransactionalID, and with RequiredAcks(AllISRAcks()): all of them are its defaults.
func New(client *kgo.Client, config Config) (*Publisher, error) {
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	config.NoTopic = cmp.Or(config.NoTopic, outbox.VerdictUnavailable)
	if config.RecordKey == nil {
		config.RecordKey = func(m outbox.Message) []byte { return []byte(cmp.Or(m.OrderKey, m.Key)) }
	}
	var found []error
	refuse := func(field, format string, args ...any) {
		found = append(found, &outbox.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if client == nil {
		refuse("client", "is nil")
	} else {
		for name, option := range map[string]any{
			"DisableIdempotentWrite": kgo.DisableIdempotentWrite, "AllowIdempotentProduceCancellation": kgo.AllowIdempotentProduceCancellation,
			"ManualFlushing": kgo.ManualFlushing, "DefaultProduceTopicAlways": kgo.DefaultProduceTopicAlways,
		} {
			if client.OptValue(option) == true {
				refuse("client", "is made with %s", name)
			}
		}
		if client.OptValue(kgo.TransactionalID) != "" {
			refuse("client", "is made with a TransactionalID")
		}
		if client.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks() {
			refuse("client", "does not wait for all in-sync replicas (RequiredAcks)")
		}
	}
	if config.Topic != "" {
		if problem := topicProblem(config.Topic); problem != "" {
			refuse("Topic", "%s", problem)
		}
		if config.TopicOf != nil {
			refuse("TopicOf", "is set beside Topic")
		}
	}
	if config.Timeout < shortestTimeout || config.Timeout > longestTimeout {
		refuse("Timeout", "is %v, not between %v and %v", config.Timeout, shortestTimeout, longestTimeout)
	}
	if marks[config.NoTopic] == nil {
		refuse("NoTopic", "is %v, not unavailable, failed or permanent", config.NoTopic)
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("kafkapub: new: %w", errors.Join(found...))
	}
	return &Publisher{client: client, config: config, flights: map[identity]*flight{}}, nil
}

// Handler is Publish as a handler of a sender, whose result is where the record is stored.
func (p *Publisher) Handler() sender.Handler {
	return sender.Handler{DoResult: func(ctx context.Context, m outbox.Message) (string, error) {
		stored, err := p.Publish(ctx, m)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("topic=%s partition=%d offset=%d", stored.Topic, stored.Partition, stored.Offset), nil
	}}
}

// A Stored says where a record is.
type Stored struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Publish produces a message's payload and waits until all in-sync replicas have it.
//
//	acknowledged, by this attempt or an earlier one's record  delivered: topic=orders partition=3 offset=42
//	no broker was reached, or none would take the record yet  outbox.Unavailable; the client has dropped it, nothing was stored
//	the topic is unknown                                      what Config.NoTopic says, by default outbox.Unavailable; nothing was stored
//	larger than the client or the topic takes, or refused     outbox.Permanent
//	by the topic's own rules
//	no topic that Kafka allows (outbox.ErrInvalid)            outbox.Permanent
//	no right to the topic or the cluster                      an ordinary failure: it may be granted
//	refused for any other reason                              an ordinary failure
//	not answered in time                                      an ordinary failure, or outbox.Unknown if Config.UnknownOnTimeout says so; the
//	                                                          client goes on trying, and the next attempt here waits for the same record
//	the sender ended the context                              its error: the sender knows what for; the record as in the line above
func (p *Publisher) Publish(ctx context.Context, m outbox.Message) (Stored, error) {
	topic, err := p.topic(m)
	if err != nil {
		return Stored{}, err
	}
	if err := ctx.Err(); err != nil {
		return Stored{}, p.outcome(ctx, topic, err)
	}
	bounded, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	f, err := p.board(bounded, m, topic)
	if err == nil {
		err = p.await(ctx, bounded, m, f)
	}
	if err != nil {
		return Stored{}, p.outcome(ctx, topic, err)
	}
	return f.stored, nil
}

func (p *Publisher) record(m outbox.Message, topic string) *kgo.Record {
	record := &kgo.Record{Topic: topic, Key: p.config.RecordKey(m), Value: m.Payload}
	for _, h := range publish.Headers(m) {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	return record
}
