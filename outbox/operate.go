package outbox

import (
	"context"
	"slices"

	"github.com/fencepost-go/fencepost/db"
)

// By is who does something to messages and why. Both go into the audit table and may not be blank.
type By struct {
	// Actor is the person or program. At most 128 bytes.
	Actor string
	// Reason is cut at 4 KiB.
	Reason string
}

// An Acted is what an operator's call did about one message.
type Acted struct {
	ID int64
	// Status is Done, or why nothing was done.
	Status Status
	// State of the message now; empty when there is no such message in the scope.
	State State
}

func (p *problems) by(by By) By {
	p.required("Actor", by.Actor, maxName)
	reason := cut(sanitise(by.Reason), maxReason)
	p.required("Reason", reason, maxReason)
	return By{Actor: by.Actor, Reason: reason}
}

func (p *problems) ids(ids []int64) {
	if len(ids) > maxBatch {
		p.addf("IDs", "has %d entries, at most %d are allowed", len(ids), maxBatch)
	}
}

// An act is one operator's statement over ids.
type act struct {
	verb    string
	done    State  // of the messages it changes
	missed  Status // of those in another state
	unknown Status // of those not in the scope
	run     func(ids []int64, by By) ([]int64, error)
}

// operate runs an act and asks what stands where it changed nothing: two statements at most. Answers are in the order of ids.
func (b *Box) operate(ctx context.Context, scope Scope, ids []int64, by By, act act) ([]Acted, error) {
	var found problems
	scope.check(&found)
	found.ids(ids)
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return nil, failed(act.verb, err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	changed, err := act.run(distinct(ids), by)
	if err != nil {
		return nil, failed(act.verb, err)
	}
	var others []int64
	for _, id := range distinct(ids) {
		if !slices.Contains(changed, id) {
			others = append(others, id)
		}
	}
	var fates map[int64]db.FindFatesRow
	if len(others) > 0 {
		if fates, err = b.findFates(ctx, scope, others); err != nil {
			return nil, failed(act.verb, err)
		}
	}
	answers := make([]Acted, len(ids))
	for i, id := range ids {
		answers[i] = Acted{ID: id, Status: Done, State: act.done}
		if slices.Contains(others, id) {
			answers[i].Status, answers[i].State = act.unknown, ""
			if fate, ok := fates[id]; ok {
				answers[i].Status, answers[i].State = act.missed, State(fate.State)
			}
		}
	}
	return answers, nil
}
