package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
)

// Any is the wildcard of a LanePattern; no name may be it.
const Any = bounds.Any

// A LanePattern names the lanes that a pause stops. Each name may be Any; an empty one is refused, but for the tenant "".
type LanePattern struct {
	Consumer, Target, Kind, Tenant string
}

// Everything is the pattern of all lanes: pausing it stops every sender, as one does first of all with a copied database.
var Everything = LanePattern{Consumer: Any, Target: Any, Kind: Any, Tenant: Any}

// A PauseMode says what a pause does to running handlers.
type PauseMode int16

const (
	// PauseLeasing stops leasing; running handlers finish.
	PauseLeasing PauseMode = 0
	// PauseCancel also cancels running handlers at their next renewal, with cause ErrPaused; their messages are given back unspent.
	PauseCancel PauseMode = 1
)

// A Pause is a kill switch that is on.
type Pause struct {
	Lanes    LanePattern
	Mode     PauseMode
	By       By
	PausedAt time.Time
}

// Pause stops the lanes of a pattern until Resume of the same pattern, and says since when. A pause of a paused pattern takes its place.
// A pattern of all tenants needs the scope AllTenants. Retryable.
func (b *Box) Pause(ctx context.Context, scope Scope, lanes LanePattern, mode PauseMode, by By) (time.Time, error) {
	var found problems
	found.pattern(scope, lanes)
	if mode != PauseLeasing && mode != PauseCancel {
		found.add("PauseMode", "is neither PauseLeasing nor PauseCancel")
	}
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return time.Time{}, failed("pause", err)
	}
	since, err := b.store.PauseLane(ctx, db.PauseLaneParams{
		Consumer: lanes.Consumer, Target: lanes.Target, Kind: lanes.Kind, Tenant: lanes.Tenant,
		Mode: int16(mode), Actor: by.Actor, Reason: by.Reason,
	})
	if err != nil {
		return time.Time{}, failed("pause", err)
	}
	return since[0].UTC(), nil
}

// Resume lifts the pause of exactly this pattern; false when there is none. Other patterns may still pause some of its lanes. Retryable.
func (b *Box) Resume(ctx context.Context, scope Scope, lanes LanePattern, by By) (bool, error) {
	var found problems
	found.pattern(scope, lanes)
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return false, failed("resume", err)
	}
	lifted, err := b.store.ResumeLane(ctx, db.ResumeLaneParams{
		Consumer: lanes.Consumer, Target: lanes.Target, Kind: lanes.Kind, Tenant: lanes.Tenant, Actor: by.Actor, Reason: by.Reason,
	})
	return len(lifted) > 0, failed("resume", err)
}

// Pauses lists the pauses that concern a scope, those of all tenants included: 1,000 at most. Retryable.
func (b *Box) Pauses(ctx context.Context, scope Scope) ([]Pause, error) {
	var found problems
	scope.check(&found)
	if err := found.refused(ctx); err != nil {
		return nil, failed("pauses", err)
	}
	rows, err := b.store.ListPauses(ctx, db.ListPausesParams{AllTenants: scope.all, Scope: scope.Names()})
	if err != nil {
		return nil, failed("pauses", err)
	}
	pauses := make([]Pause, len(rows))
	for i, row := range rows {
		pauses[i] = Pause{
			Lanes:    LanePattern{Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Tenant: row.Tenant},
			Mode:     PauseMode(row.Mode),
			By:       By{Actor: row.Actor, Reason: row.Reason},
			PausedAt: row.PausedAt.UTC(),
		}
	}
	return pauses, nil
}

// pattern refuses bad names and a pattern that reaches beyond the scope.
func (p *problems) pattern(scope Scope, lanes LanePattern) {
	scope.check(p)
	p.required("Consumer", lanes.Consumer, maxName)
	p.required("Target", lanes.Target, maxName)
	p.required("Kind", lanes.Kind, maxName)
	p.optional("Tenant", lanes.Tenant, maxName)
	if !scope.Includes(lanes.Tenant) {
		p.add("Tenant", "is outside of the scope")
	}
}
