package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
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

// DueLanes lists the lanes that have a due message, paused ones left out, in no promised order. It sends one statement for each 1,000
// lanes found. Retryable.
func (b *Box) DueLanes(ctx context.Context, query LaneQuery) ([]DueLane, error) {
	var found problems
	found.consumer(query.Consumer)
	found.kinds(query.Kinds)
	query.Scope.check(&found)
	if err := found.refused(ctx); err != nil {
		return nil, failed("due lanes", err)
	}
	var lanes []DueLane
	for seeds := range slices.Chunk(laneSeeds(query), maxBatch) {
		more, err := b.dueLanes(ctx, query, seeds, query.Limit-len(lanes))
		if err != nil {
			return nil, failed("due lanes", err)
		}
		lanes = append(lanes, more...)
	}
	return lanes, nil
}

// A laneSeed is where the loose scan of one kind goes on: through all tenants, or through the priorities of one.
type laneSeed struct {
	kind     string
	tenant   string
	priority int32
}

func laneSeeds(query LaneQuery) []laneSeed {
	tenants := query.Scope.Names()
	if query.Scope.all {
		tenants = []string{""}
	}
	var seeds []laneSeed
	for _, kind := range distinct(query.Kinds) {
		for _, tenant := range tenants {
			seeds = append(seeds, laneSeed{kind: kind, tenant: tenant, priority: db.FirstPriority})
		}
	}
	return seeds
}

func (b *Box) dueLanes(ctx context.Context, query LaneQuery, seeds []laneSeed, limit int) ([]DueLane, error) {
	var lanes []DueLane
	for len(lanes) < limit {
		params := db.DueLanesParams{
			MaxRows:    int32(min(limit-len(lanes), maxBatch)),
			AllTenants: query.Scope.all,
		}
		for _, seed := range seeds {
			params.Consumers = append(params.Consumers, query.Consumer.name)
			params.Targets = append(params.Targets, query.Consumer.target)
			params.Kinds = append(params.Kinds, seed.kind)
			params.AfterTenants = append(params.AfterTenants, seed.tenant)
			params.AfterPriorities = append(params.AfterPriorities, seed.priority)
		}
		rows, err := b.store.DueLanes(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			seed := &seeds[row.Seed-1]
			seed.tenant, seed.priority = row.Tenant, row.Priority
			lanes = append(lanes, DueLane{
				Lane:  Lane{Kind: seed.kind, Tenant: row.Tenant, Priority: int16(row.Priority)},
				Since: row.DueAt.UTC(),
			})
		}
		if len(rows) < int(params.MaxRows) {
			break
		}
	}
	return lanes, nil
}
