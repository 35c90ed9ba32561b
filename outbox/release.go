package outbox

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
)

// Release gives a lease back unspent: see ReleaseMany.
func (b *Box) Release(ctx context.Context, message Message) error {
	return b.ReleaseMany(ctx, []Message{message})
}

// ReleaseMany gives leases back whose effects were not performed: the messages are due again at once and keep the attempt. A lease that
// is over is given back too, unless the message was leased again; what is not held any more is left alone. After an error try again, or
// let the leases run out, which costs the attempts. One statement for each 1,000 messages.
func (b *Box) ReleaseMany(ctx context.Context, messages []Message) error {
	var found problems
	for i, m := range messages {
		found.at(i).held(m)
	}
	if err := found.refused(ctx); err != nil {
		return failed("release", err)
	}
	for _, batch := range batches(places(len(messages)), func(i int) int64 { return messages[i].ID }) {
		if err := b.release(ctx, messages, batch); err != nil {
			return failed("release", err)
		}
	}
	return nil
}

func (b *Box) release(ctx context.Context, messages []Message, places []int) error {
	ids, tokens := heldArrays(messages, places)
	released, err := b.store.Release(ctx, db.ReleaseParams{Ids: ids, Tokens: tokens})
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
