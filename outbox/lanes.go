package outbox

import (
	"context"
	"time"
)

// A Lane is the unit of fairness, of pausing and of watermarks within one consumer.
type Lane struct {
	Kind     string
	Tenant   string
	Priority int16
}

// A Mark is a place in a lane, in the order of leasing. The zero Mark is its front.
type Mark struct {
	Due time.Time
	ID  int64
}

// A LaneQuery asks for the lanes of a consumer that have a due message.
type LaneQuery struct {
	Consumer *Consumer
	// Kinds to look for; none finds nothing and sends no query.
	Kinds []string
	Scope Scope
	// Limit is the number of lanes at most; zero or less finds nothing and sends no query.
	Limit int
}

// A DueLane is a lane with the instant its earliest message came due. Another worker may hold that message.
type DueLane struct {
	Lane
	Since time.Time
}

// DueLanes lists the lanes that have a due message, paused ones left out. It sends one statement for each 1,000 lanes found. Retryable.
func (b *Box) DueLanes(ctx context.Context, query LaneQuery) ([]DueLane, error) {
	return nil, nil
}
