package outbox

import (
	"context"
	"slices"
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

// An operation is one operator's statement over ids.
type operation struct {
	verb    string
	done    State  // of the messages it changes
	missed  Status // of those in another state
	unknown Status // of those not in the scope
	ends    bool   // every open message: one that is missed was leased at that moment, and is tried again
	run     func(ids []int64, by By) ([]int64, error)
}

// operationTries bounds how often an operation meets messages that are leased at that moment.
const operationTries = 10

// operate runs an operation and asks what stands where it changed nothing. Answers are in the order of ids.
func (b *Box) operate(ctx context.Context, scope Scope, ids []int64, by By, op operation) ([]Acted, error) {
	var found problems
	scope.check(&found)
	found.ids(ids)
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return nil, failed(op.verb, err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	answers := make(map[int64]Acted, len(ids))
	rest := distinct(ids)
	for try := 0; len(rest) > 0 && try < operationTries; try++ {
		changed, err := op.run(rest, by)
		if err != nil {
			return nil, failed(op.verb, err)
		}
		for _, id := range changed {
			answers[id] = Acted{ID: id, Status: Done, State: op.done}
		}
		if rest, err = b.classifyMissed(ctx, scope, rest, op, answers); err != nil {
			return nil, failed(op.verb, err)
		}
	}
	inOrder := make([]Acted, len(ids))
	for i, id := range ids {
		inOrder[i] = answers[id]
	}
	return inOrder, nil
}

// classifyMissed answers for the ids that an operation did not change, and gives those to try again.
func (b *Box) classifyMissed(ctx context.Context, scope Scope, ids []int64, op operation, answers map[int64]Acted) (again []int64, err error) {
	missed := slices.DeleteFunc(ids, func(id int64) bool { return answers[id].Status == Done })
	if len(missed) == 0 {
		return nil, nil
	}
	fates, err := b.findFates(ctx, scope, missed)
	if err != nil {
		return nil, err
	}
	for _, id := range missed {
		answers[id] = Acted{ID: id, Status: op.unknown}
		if fate, ok := fates[id]; ok {
			answers[id] = Acted{ID: id, Status: op.missed, State: State(fate.State)}
			if op.ends && answers[id].State.open() {
				again = append(again, id)
			}
		}
	}
	return again, nil
}
