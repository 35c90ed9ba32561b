package natspub

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
)

// headerTooLarge is the stream's error code for headers over 64 KiB, which the client has no name for.
const headerTooLarge jetstream.ErrorCode = 10097

// outcome is what the error of a publish means.
func (p *Publisher) outcome(ctx context.Context, subject string, cause error) error {
	err := fmt.Errorf("natspub: publish to %s: %w", subject, cause)
	var refused *jetstream.APIError
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return err // the sender ended it, and knows what for
	case errors.Is(cause, jetstream.ErrNoStreamResponse):
		return marks[p.config.NoStream](err)
	case errors.Is(cause, nats.ErrMaxPayload), errors.Is(cause, nats.ErrBadSubject):
		return outbox.Permanent(err)
	case errors.Is(cause, nats.ErrConnectionDraining), errors.Is(cause, nats.ErrReconnectBufExceeded):
		return outbox.Unavailable(err) // the client took nothing
	case errors.As(cause, &refused):
		if refused.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum || refused.ErrorCode == headerTooLarge {
			return outbox.Permanent(err)
		}
		return err
	}
	if last := p.js.Conn().LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), fmt.Sprintf("%q", subject)) {
		err = fmt.Errorf("%w (%w)", err, last) // the server told the connection and not the request
	}
	if p.config.UnknownOnTimeout {
		return outbox.Unknown(err)
	}
	return err
}

func (p *Publisher) subject(m outbox.Message) (string, error) {
	if p.config.Subject != "" {
		return p.config.Subject, nil
	}
	subject, field := m.Target, "Target"
	if p.config.SubjectOf != nil {
		var err error
		if subject, err = p.config.SubjectOf(m); err != nil {
			return "", err
		}
		field = "SubjectOf"
	}
	if problem := subjectProblem(subject); problem != "" {
		return "", outbox.Permanent(fmt.Errorf("natspub: publish: %w", &outbox.InvalidError{Field: field, Problem: problem}))
	}
	return subject, nil
}

// subjectProblem says why nothing can be published to a subject.
func subjectProblem(subject string) string {
	if strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "has white space or a control character"
	}
	for token := range strings.SplitSeq(subject, ".") {
		switch token {
		case "":
			return "is blank, or has a token that is"
		case "*", ">":
			return "has a wildcard"
		}
	}
	return ""
}
