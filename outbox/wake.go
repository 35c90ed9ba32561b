package outbox

// Committed says that a transaction that stored these messages has committed, so that senders need not wait for their next poll. It only
// sets a flag, which RunNotifier acts on, and never blocks.
func (b *Box) Committed(ids ...int64) {
	if len(ids) == 0 {
		return
	}
	select {
	case b.committed <- struct{}{}:
	default:
	}
}
