package kafkapub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/fencepost-go/fencepost/outbox"
)

const (
	// settling is how long the client may take to say, after a record's time is over, that it dropped the record.
	settling = 250 * time.Millisecond
	// remembered is how long an answer that came too late is kept for the next attempt.
	remembered = time.Hour
)

var errUnanswered = errors.New("the record is not answered yet")

// An identity is one message of one database.
type identity struct {
	id                    int64
	tenant, consumer, key string
}

func identityOf(m outbox.Message) identity { return identity{m.ID, m.Tenant, m.Consumer, m.Key} }

// A flight is a record in the hands of the client, which does not let go of what it may have sent.
type flight struct {
	landed chan struct{} // closed once the rest is there
	stored Stored
	err    error
	until  time.Time // when it is forgotten
}

func (f *flight) hasLanded() bool {
	select {
	case <-f.landed:
		return true
	default:
		return false
	}
}

// board gives the flight of an earlier attempt that may have stored the message, or starts one. Where the last record was not answered, a broker
// must answer first: else each attempt during an outage would leave a record behind.
func (p *Publisher) board(ctx context.Context, m outbox.Message, topic string) (*flight, error) {
	p.mu.Lock()
	f, doubtful := p.flights[identityOf(m)], p.doubtful
	p.mu.Unlock()
	if f != nil && (!f.hasLanded() || f.err == nil) {
		return f, nil
	}
	if doubtful {
		if err := p.client.Ping(ctx); err != nil {
			return nil, outbox.Unavailable(fmt.Errorf("no broker answers: %w", err))
		}
	}
	f = &flight{landed: make(chan struct{})}
	p.mu.Lock()
	p.flights[identityOf(m)] = f
	p.mu.Unlock()
	go func() { // ends when the client answers or is closed
		record, err := p.client.ProduceSync(ctx, p.record(m, topic)).First()
		f.stored, f.err, f.until = Stored{record.Topic, record.Partition, record.Offset}, err, time.Now().Add(remembered)
		close(f.landed)
	}()
	return f, nil
}

// await is how a flight ends, or errUnanswered when the time is over. A flight that has ended is forgotten, one that has not is kept.
func (p *Publisher) await(ctx, bounded context.Context, m outbox.Message, f *flight) error {
	select {
	case <-f.landed:
	case <-bounded.Done():
		late := time.NewTimer(settling)
		defer late.Stop()
		select {
		case <-f.landed:
		case <-late.C:
		case <-ctx.Done(): // obeyed at once
		}
	}
	err := errUnanswered
	if f.hasLanded() {
		err = f.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var answer *kerr.Error
	p.doubtful = err != nil && !errors.As(err, &answer)
	if err != errUnanswered {
		delete(p.flights, identityOf(m))
		return err
	}
	for key, other := range p.flights {
		if other.hasLanded() && time.Now().After(other.until) {
			delete(p.flights, key)
		}
	}
	return err
}
