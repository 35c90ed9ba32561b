package outbox

import (
	"context"
	"time"
)

// A Renewal is what became of one lease.
type Renewal struct {
	// Until is when the lease ends now; zero when it was not renewed.
	Until time.Time
	// Err is nil, ErrLeaseLost, ErrCancelled, or ErrPaused: then the lease is renewed too, so that it can be released.
	Err error
}

// Renew extends leases to length from now and never shortens one. There is one Renewal for each message, in input order. An error says
// nothing about any of them: try again while the leases last. One statement for each 1,000 messages.
func (b *Box) Renew(ctx context.Context, messages []Message, length time.Duration) ([]Renewal, error) {
	return nil, nil
}
