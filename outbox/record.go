package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// A settleRun is one SettleMany under way.
type settleRun struct {
	box       *Box
	consumer  *Consumer
	scope     Scope
	settlings []Settling
	decisions []decision
	results   []Result
}

// settle records the settlings at some places, all of one verb, in one statement, and asks what stands where it changed nothing. Its error
// is a *SettleUnknownError.
func (r *settleRun) settle(ctx context.Context, v verb, places []int) error {
	changed, err := r.record(ctx, v, places)
	if err != nil {
		return r.unknown(places, err)
	}
	var stale []int
	for _, i := range places {
		if row, ok := changed[r.settlings[i].Message.ID]; ok {
			r.results[i] = r.done(i, row)
		} else {
			stale = append(stale, i)
		}
	}
	return r.classifyStale(ctx, stale)
}

// record sends the statement of a verb and gives the rows it changed, by id.
func (r *settleRun) record(ctx context.Context, v verb, places []int) (map[int64]db.SettleRetryRow, error) {
	store, policy := r.box.store, r.consumer.policy
	args := r.arrays(v, places)
	var ids []int64
	var err error
	switch v {
	case verbDeliver:
		if policy.DropDelivered {
			ids, err = store.SettleDropped(ctx, db.SettleDroppedParams{
				Ids: args.ids, Tokens: args.tokens, Consumer: r.consumer.name, Target: r.consumer.target,
				AllTenants: r.scope.all, Scope: r.scope.Names(), AcceptLate: policy.AcceptLate,
			})
			break
		}
		ids, err = store.SettleDelivered(ctx, db.SettleDeliveredParams{
			Ids: args.ids, Tokens: args.tokens, Consumer: r.consumer.name, Target: r.consumer.target,
			AllTenants: r.scope.all, Scope: r.scope.Names(), AcceptLate: policy.AcceptLate,
			Results: args.results,
		})
	case verbBury:
		ids, err = store.SettleDead(ctx, db.SettleDeadParams{
			Ids: args.ids, Tokens: args.tokens, Consumer: r.consumer.name, Target: r.consumer.target,
			AllTenants: r.scope.all, Scope: r.scope.Names(), BlockOnDead: policy.BlockOnDead,
			Causes: args.causes, Reasons: args.reasons,
		})
	case verbPark:
		ids, err = store.SettleParked(ctx, db.SettleParkedParams{
			Ids: args.ids, Tokens: args.tokens, Consumer: r.consumer.name, Target: r.consumer.target,
			AllTenants: r.scope.all, Scope: r.scope.Names(),
			LastErrors: args.lastErrors,
		})
	default:
		return r.retry(ctx, args, v == verbRetryUnspent)
	}
	changed := make(map[int64]db.SettleRetryRow, len(ids))
	for _, id := range ids {
		changed[id] = db.SettleRetryRow{ID: id}
	}
	return changed, err
}

func (r *settleRun) retry(ctx context.Context, args settleArrays, unspent bool) (map[int64]db.SettleRetryRow, error) {
	rows, err := r.box.store.SettleRetry(ctx, db.SettleRetryParams{
		Ids: args.ids, Tokens: args.tokens, Consumer: r.consumer.name, Target: r.consumer.target,
		AllTenants: r.scope.all, Scope: r.scope.Names(), BlockOnDead: r.consumer.policy.BlockOnDead,
		MaxAges: args.maxAges, Delays: args.delays, Unspent: unspent, Unsures: args.unsures,
		LastErrors: args.lastErrors, Reasons: args.agedReasons,
	})
	changed := make(map[int64]db.SettleRetryRow, len(rows))
	for _, row := range rows {
		changed[row.ID] = row
	}
	return changed, err
}

// settleArrays are the arguments of all settling statements; each takes what it needs.
type settleArrays struct {
	ids                                               []int64
	tokens                                            []byte
	results, causes, reasons, agedReasons, lastErrors []string
	maxAges, delays                                   []int64
	unsures                                           []bool
}

func (r *settleRun) arrays(v verb, places []int) (a settleArrays) {
	a.ids, a.tokens = make([]int64, 0, len(places)), make([]byte, 0, len(places)*db.TokenSize)
	for n, i := range places {
		m, d := &r.settlings[i].Message, &r.decisions[i]
		a.ids = append(a.ids, m.ID)
		a.tokens = append(a.tokens, m.token[:]...)
		if v == verbDeliver {
			if d.result != "" && a.results == nil {
				a.results = make([]string, len(places))
			}
			if d.result != "" {
				a.results[n] = d.result
			}
			continue
		}
		a.causes = append(a.causes, string(d.cause))
		a.reasons = append(a.reasons, d.reason)
		a.agedReasons = append(a.agedReasons, d.agedReason())
		a.lastErrors = append(a.lastErrors, d.lastError())
		a.maxAges = append(a.maxAges, r.consumer.maxAge(m.Kind))
		a.delays = append(a.delays, micros(d.delay))
		a.unsures = append(a.unsures, d.unsure)
	}
	return a
}

// lastError is what the narrow queue row keeps of a reason.
func (d decision) lastError() string { return cut(d.reason, maxLastError) }

// agedReason is the reason of a message that turns out too old for its retry; it reads as that of one found too old at a lease.
func (d decision) agedReason() string { return cut("too old; last error: "+d.reason, maxReason) }

// done is the result of a settling whose row was changed.
func (r *settleRun) done(i int, row db.SettleRetryRow) Result {
	d := r.decisions[i]
	result := Result{Attempt: r.settlings[i].Message.Attempt}
	switch {
	case d.verb == verbDeliver:
		result.Status = Acknowledged
	case d.verb == verbPark:
		result.Status, result.Reason = Parked, d.lastError()
	case d.verb == verbBury:
		result.Status, result.Cause, result.Reason = DeadLettered, d.cause, d.reason
	case row.Aged:
		result.Status, result.Cause, result.Reason = DeadLettered, CauseAge, d.agedReason()
	default:
		result.Status, result.Delay, result.Reason, result.Attempt = RetryScheduled, d.delay, d.lastError(), int(row.Attempt)
	}
	return result
}

// classifyStale tells a settling that was recorded by an earlier try from one whose lease is lost.
func (r *settleRun) classifyStale(ctx context.Context, places []int) error {
	if len(places) == 0 {
		return nil
	}
	ids := make([]int64, len(places))
	for n, i := range places {
		ids[n] = r.settlings[i].Message.ID
	}
	fates, err := r.box.findFates(ctx, r.scope, ids)
	if err != nil {
		return r.unknown(places, err)
	}
	for _, i := range places {
		m := r.settlings[i].Message
		fate, found := fates[m.ID]
		r.results[i] = Result{Status: StaleLease, Attempt: m.Attempt}
		if !found || !r.decisions[i].recorded(m, fate) {
			continue
		}
		r.results[i].Recorded, r.results[i].State = true, State(fate.State)
		if State(fate.State) == StateDead {
			// Nobody has told of this death, since the answer of the settle that recorded it was lost.
			r.box.reportDead(ctx, Burial{Message: m, Cause: Cause(fate.Cause), Reason: fate.Reason})
		}
	}
	return nil
}

// recorded says whether what stands for a message is this very decision about this very lease.
func (d decision) recorded(m Message, fate db.FindFatesRow) bool {
	if fate.Epoch != m.Epoch || fate.Held {
		return false
	}
	state := State(fate.State)
	switch d.verb {
	case verbDeliver:
		return state == StateDelivered
	case verbBury:
		return state == StateDead && Cause(fate.Cause) == d.cause
	case verbPark:
		return state == StateParked
	}
	attempt := m.Attempt
	if d.verb == verbRetryUnspent {
		attempt--
	}
	return state == StatePending && int(fate.Attempt) == attempt && fate.Reason == d.lastError() ||
		// A lease that buries the message instead knows the last error of an earlier attempt only.
		state == StateDead && Cause(fate.Cause) == CauseAge && fate.Reason == d.agedReason()
}

// unknown marks the settlings at some places as unanswered.
func (r *settleRun) unknown(places []int, err error) error {
	for _, i := range places {
		r.results[i] = Result{Status: SettleUnknown, Attempt: r.settlings[i].Message.Attempt}
	}
	one := r.settlings[places[0]]
	return &SettleUnknownError{Message: one.Message, Outcome: one.Outcome, Others: len(places) - 1, Err: err}
}
