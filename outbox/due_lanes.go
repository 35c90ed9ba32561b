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
	lanes, err := b.DueLanesOf(ctx, []LaneQuery{query})
	if err != nil {
		return nil, err
	}
	return lanes[0], nil
}

// DueLanesOf is DueLanes for several consumers at once, with an answer to each query, in their order. They share their statements: one for those of
// named tenants, and one for those of all.
func (b *Box) DueLanesOf(ctx context.Context, queries []LaneQuery) ([][]DueLane, error) {
	var found problems
	for _, query := range queries {
		found.consumer(query.Consumer)
		found.kinds(query.Kinds)
		query.Scope.check(&found)
	}
	if err := found.refused(ctx); err != nil {
		return nil, failed("due lanes", err)
	}
	scan := laneScan{box: b, queries: queries, lanes: make([][]DueLane, len(queries))}
	for _, allTenants := range []bool{false, true} {
		for seeds := range slices.Chunk(laneSeeds(queries, allTenants), maxBatch) {
			if err := scan.run(ctx, seeds, allTenants); err != nil {
				return nil, failed("due lanes", err)
			}
		}
	}
	return scan.lanes, nil
}

// A laneSeed is where the loose scan of one kind of one query goes on: through all tenants, or through the priorities of one.
type laneSeed struct {
	query    int
	kind     string
	tenant   string
	priority int32
}

// laneSeeds are those of the queries for all tenants, or of the others.
func laneSeeds(queries []LaneQuery, allTenants bool) []laneSeed {
	var seeds []laneSeed
	for i, query := range queries {
		if query.Scope.all != allTenants {
			continue
		}
		tenants := query.Scope.Names()
		if allTenants {
			tenants = []string{""}
		}
		for _, kind := range distinct(query.Kinds) {
			for _, tenant := range tenants {
				seeds = append(seeds, laneSeed{query: i, kind: kind, tenant: tenant, priority: db.FirstPriority})
			}
		}
	}
	return seeds
}

// A laneScan is one DueLanesOf under way.
type laneScan struct {
	box     *Box
	queries []LaneQuery
	lanes   [][]DueLane
}

// run goes on from the seeds until they are through or their queries have enough.
func (s *laneScan) run(ctx context.Context, seeds []laneSeed, allTenants bool) error {
	for {
		seeds = slices.DeleteFunc(seeds, func(seed laneSeed) bool { return s.room(seed.query) <= 0 })
		if len(seeds) == 0 {
			return nil
		}
		params := db.DueLanesParams{MaxRows: int32(s.most(seeds)), AllTenants: allTenants}
		for _, seed := range seeds {
			consumer := s.queries[seed.query].Consumer
			params.Consumers = append(params.Consumers, consumer.name)
			params.Targets = append(params.Targets, consumer.target)
			params.Kinds = append(params.Kinds, seed.kind)
			params.AfterTenants = append(params.AfterTenants, seed.tenant)
			params.AfterPriorities = append(params.AfterPriorities, seed.priority)
		}
		rows, err := s.box.store.DueLanes(ctx, params)
		if err != nil {
			return err
		}
		for _, row := range rows {
			seed := &seeds[row.Seed-1]
			seed.tenant, seed.priority = row.Tenant, row.Priority
			if s.room(seed.query) > 0 {
				s.lanes[seed.query] = append(s.lanes[seed.query], DueLane{
					Lane:  Lane{Kind: seed.kind, Tenant: row.Tenant, Priority: int16(row.Priority)},
					Since: row.DueAt.UTC(),
				})
			}
		}
		if len(rows) < int(params.MaxRows) {
			return nil
		}
	}
}

// room is how many more lanes a query wants.
func (s *laneScan) room(query int) int { return s.queries[query].Limit - len(s.lanes[query]) }

// most is how many rows the next statement may return: what the queries of the seeds want, at most a full statement.
func (s *laneScan) most(seeds []laneSeed) int {
	rows, last := 0, -1
	for _, seed := range seeds {
		if seed.query != last {
			rows, last = min(rows+s.room(seed.query), maxBatch), seed.query
		}
	}
	return rows
}
