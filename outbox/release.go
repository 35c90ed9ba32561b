package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// A Releasing is one message to give back.
type Releasing struct {
	Message Message
	// Started says that its handler had begun, and was interrupted: the message comes back Unsure, so that a kind that can reconcile is
	// asked before it performs again.
	Started bool
}

// Release gives the lease of a message back whose handler did not start, unspent: see ReleaseMany.
func (b *Box) Release(ctx context.Context, message Message) error {
	return b.ReleaseMany(ctx, []Releasing{{Message: message}})
}

// ReleaseMany gives leases back whose effects were not performed, or not to the end: the messages are due again at once and keep the
// attempt; one that was Unsure stays so. A lease that is over is given back too, unless the message was leased again; what is not held any
// more is left alone. After an error try again, or let the leases run out, which costs the attempts. One statement for each 1,000 messages.
func (b *Box) ReleaseMany(ctx context.Context, releasings []Releasing) error {
	var found problems
	messages := make([]Message, len(releasings))
	for i, r := range releasings {
		messages[i] = r.Message
		found.at(i).held(r.Message)
	}
	if err := found.refused(ctx); err != nil {
		return failed("release", err)
	}
	for _, batch := range batches(places(len(messages)), func(i int) int64 { return messages[i].ID }) {
		params := db.ReleaseParams{Unsures: make([]bool, len(batch))}
		params.Ids, params.Tokens = heldArrays(messages, batch)
		for n, i := range batch {
			params.Unsures[n] = releasings[i].Started
		}
		if err := b.release(ctx, params, messages, batch); err != nil {
			return failed("release", err)
		}
	}
	return nil
}

func (b *Box) release(ctx context.Context, params db.ReleaseParams, messages []Message, places []int) error {
	released, err := b.store.Release(ctx, params)
	if err != nil {
		return err
	}
	back := make(map[int64]bool, len(released))
	for _, id := range released {
		back[id] = true
	}
	var given []Message
	for _, i := range places {
		if back[messages[i].ID] {
			given = append(given, messages[i])
		}
	}
	b.observer.GivenBack(ctx, given)
	return nil
}
