package kafkapub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/fencepost-go/fencepost/outbox"
)

var marks = map[outbox.Verdict]func(error) error{
	outbox.VerdictUnavailable: outbox.Unavailable,
	outbox.VerdictFailed:      func(err error) error { return err },
	outbox.VerdictPermanent:   outbox.Permanent,
}

// outcome is what the error of a record means.
func (p *Publisher) outcome(ctx context.Context, topic string, cause error) error {
	err := fmt.Errorf("kafkapub: publish to %s: %w", topic, cause)
	var dial *net.OpError
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w (%w)", err, ctx.Err()) // the sender ended it, and knows what for
	case errors.Is(cause, errUnanswered):
		if p.config.UnknownOnTimeout {
			return outbox.Unknown(err)
		}
		return err
	case errors.Is(cause, kerr.UnknownTopicOrPartition):
		return marks[p.config.NoTopic](err)
	case isAny(cause, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTopicException, kerr.PolicyViolation):
		return outbox.Permanent(err)
	case isAny(cause, context.DeadlineExceeded, context.Canceled, kgo.ErrRecordTimeout, kgo.ErrRecordRetries), errors.As(cause, &dial) && dial.Op == "dial":
		return outbox.Unavailable(err) // the client says so only of records that cannot have been stored; the context may be that of another in the batch
	}
	return err
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func (p *Publisher) topic(m outbox.Message) (string, error) {
	if p.config.Topic != "" {
		return p.config.Topic, nil
	}
	topic, field := m.Target, "Target"
	if p.config.TopicOf != nil {
		var err error
		if topic, err = p.config.TopicOf(m); err != nil {
			return "", err
		}
		field = "TopicOf"
	}
	if problem := topicProblem(topic); problem != "" {
		return "", outbox.Permanent(fmt.Errorf("kafkapub: publish: %w", &outbox.InvalidError{Field: field, Problem: problem}))
	}
	return topic, nil
}

// topicProblem says why Kafka has no topic of a name.
func topicProblem(topic string) string {
	const longest = 249
	switch {
	case strings.TrimSpace(topic) == "":
		return "is blank"
	case topic == "." || topic == "..":
		return "is . or .."
	case len(topic) > longest:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(topic), longest)
	case strings.ContainsFunc(topic, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
	}):
		return "has a character other than ASCII letters, digits, full stop, underscore and hyphen"
	}
	return ""
}
