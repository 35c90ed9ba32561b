package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// maxSubscription leaves room for the event's id and the ordinal in a derived key, and for the prefix of a backfill's reader.
const maxSubscription = 64

// A Subscription derives effects from events, in the transaction that appends them.
type Subscription struct {
	// Name identifies the subscription for ever: the keys of its effects begin with it. At most 64 bytes, no colon.
	Name string
	// Consumer and Target of the effects. At most 128 bytes each.
	Consumer, Target string
	// Types are the types of event it takes; none means all.
	Types []string
	// Derive gives the effects of an event, which has no position yet: any number, none too. It must be pure: Backfill runs it again over past events.
	// Tenant, Consumer, Target and the source are filled in, and must be empty or the same. So is a Key left empty: it is made of the
	// subscription's name, the event's id and the effect's place in the list, so that an effect comes once however often it is derived.
	// An error refuses the append, before any statement.
	Derive func(Event) ([]outbox.Effect, error)
}

func (s Subscription) check(found *refusal.Problems) {
	bounds.CheckRequired(s.Name, maxSubscription, found.On("Subscriptions.Name"))
	if strings.Contains(s.Name, ":") {
		found.Add("Subscriptions.Name", "has a colon, which ends it in a key")
	}
	bounds.CheckName(s.Consumer, bounds.Name, found.On("Subscriptions.Consumer"))
	bounds.CheckName(s.Target, bounds.Name, found.On("Subscriptions.Target"))
	for _, t := range s.Types {
		bounds.CheckName(t, bounds.Name, found.On("Subscriptions.Types"))
	}
	if s.Derive == nil {
		found.Add("Subscriptions.Derive", "is nil")
	}
}

func (s Subscription) takes(e Event) bool {
	return len(s.Types) == 0 || slices.Contains(s.Types, e.Type)
}

// derive gives the effects of an event, complete but for the source's position, and valid.
func (s Subscription) derive(box *outbox.Box, e Event) (effects []outbox.Effect, err error) {
	given, err := contained(func() ([]outbox.Effect, error) { return s.Derive(e.clone()) })
	if err != nil {
		return nil, err
	}
	effects = slices.Clone(given)
	for i := range effects {
		effect := &effects[i]
		if effect.SourcePosition != 0 || effect.SourceEventID != "" {
			return nil, &outbox.InvalidError{Index: i, Field: "SourceEventID", Problem: "is set, which the subscription does", Batch: true}
		}
		for _, field := range []struct {
			name, want string
			value      *string
		}{{"Tenant", e.Tenant, &effect.Tenant}, {"Consumer", s.Consumer, &effect.Consumer}, {"Target", s.Target, &effect.Target}} {
			if *field.value != "" && *field.value != field.want {
				return nil, &outbox.InvalidError{Index: i, Field: field.name, Problem: "is another than the event's or the subscription's", Batch: true}
			}
			*field.value = field.want
		}
		if effect.Key == "" {
			effect.Key = derivedKey(s.Name, e.ID, i)
		}
		effect.SourceEventID = e.ID
	}
	return effects, box.Check(effects...)
}

// derivedKey is that of an effect whose function gives none. PurgeClaims finds the message of a bus by it.
func derivedKey(subscription, event string, i int) string {
	return fmt.Sprintf("%s:%s:%d", subscription, event, i)
}

// errGoexit stands for a function that ended its goroutine.
var errGoexit = errors.New("the function ended its goroutine")

// contained turns a panic and a runtime.Goexit of a caller's function into an error. It runs in a goroutine of its own, which alone a Goexit ends.
func contained[T any](do func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	err = errGoexit
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("the function panicked: %v", cause)
			}
		}()
		result, err = do()
	}()
	<-done
	return result, err
}
