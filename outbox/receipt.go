package outbox

// A Receipt is what became of one effect.
type Receipt struct {
	// ID of the message: the new one, or the one that has the key. 0 when Suppressed.
	ID int64
	// Status is Recorded, Duplicate, Conflicted or Suppressed.
	Status Status
	// State of the message; empty when Suppressed. A duplicate may be anything, dead or delivered long ago too; one whose message was
	// purged is none: its key is free.
	State State

	box *Box // of a recorded effect
}

// Committed says that the transaction has committed: see Box.Committed.
func (r Receipt) Committed() { Receipts{r}.Committed() }

// Receipts are those of one EnqueueMany, in input order.
type Receipts []Receipt

// Committed says that the transaction has committed: see Box.Committed.
func (rs Receipts) Committed() {
	for _, r := range rs {
		if r.box != nil {
			r.box.Committed(r.ID)
		}
	}
}
