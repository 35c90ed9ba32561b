package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// refused says why a call must not send a statement: its arguments are invalid, or its context is over already.
func (p *problems) refused(ctx context.Context) error {
	if err := p.err(); err != nil {
		return err
	}
	return ctx.Err()
}

func (p *problems) consumer(c *Consumer) {
	if c == nil {
		p.add("Consumer", "is nil")
	}
}

// lease turns the length of a lease into microseconds.
func (p *problems) lease(field string, length time.Duration) int64 {
	if length > db.LongestLease {
		p.addf(field, "is %v, at most %v are allowed", length, db.LongestLease)
	}
	return micros(max(length, time.Millisecond))
}

// held refuses a message that no lease gave out: its token is that of every free row.
func (p *problems) held(m Message) {
	if !m.leased() {
		p.add("Message", "does not come from a lease")
	}
}
