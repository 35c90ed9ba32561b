// Package move takes an outbox from one store to another, ids and epochs included.
package move

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Reason is that of the pause by which a move keeps senders from leasing, in the source and, until it has ended, in the target.
const Reason = "this outbox moves to another database (fencepost move)"

// A Source is a store whose outbox leaves.
type Source interface {
	// MoveHold pauses everything, unless it is, and ends the leases that are over. It returns the live ones.
	MoveHold(ctx context.Context, actor, reason string) (Leases, error)
	// MoveSize tells how much there is.
	MoveSize(ctx context.Context) (Size, error)
	// MoveOut reads what comes after an id: rows that count for bytes, at most rows of a table.
	MoveOut(ctx context.Context, after int64, rows int) (Slice, error)
}

// A Target is a store that takes an outbox over.
type Target interface {
	// MoveEmpty reports whether the tables are as a first migration makes them.
	MoveEmpty(ctx context.Context) (bool, error)
	// MoveReserve keeps the ids up to the size's for what is moved, and takes the stream over.
	MoveReserve(ctx context.Context, size Size) error
	// MoveIn stores what is not there yet, all or nothing, and returns how many messages that were.
	MoveIn(ctx context.Context, slice Slice) (int, error)
	// MoveCompare compares a slice with what there is in its place, table by table.
	MoveCompare(ctx context.Context, slice Slice) ([]Comparison, error)
	// MoveResume lifts the pause that has the reason, and reports whether there was one.
	MoveResume(ctx context.Context, reason string) (bool, error)
}

// Leases are the live ones of a source, and when the last of them ends.
type Leases struct {
	Live  int64
	Until time.Time
}

// Size is how many messages and events a source has, the highest id it ever gave to a message, an act, a worker and an event, and which
// stream it is: its incarnation and the last event that was purged.
type Size struct {
	Rows, Message, Act, Worker, Event int64
	Batches                           int64 // that are not completed
	Stream                            string
	PurgedPosition                    int64
	PurgedDigest                      []byte
}

// A Slice is all rows with an id above After and up to Upto, and all pauses and readers, as JSON.
type Slice struct {
	After, Upto                                               int64
	Count                                                     int64 // of messages and events
	Messages, Queue, Settlements, OrderLeases, Audits, Pauses string
	Events, Claims, Readers, Incarnations                     string
	ClaimsInAll                                               int64 // of the last slice
}

func (s Slice) last() bool { return s.Upto == math.MaxInt64 }

// A Comparison is how many rows of a table a slice has, how many the target has in its place, and the lowest id of those that are not
// the slice's.
type Comparison struct {
	Table                string
	Given, Held, Strange int64
}

func (c Comparison) String() string {
	if c.Strange != 0 {
		return fmt.Sprintf("row %d is not as in the file", c.Strange)
	}
	return fmt.Sprintf("%d rows of %d are missing", c.Given-c.Held, c.Given)
}

// A Refusal says why nothing was moved.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

// A Move is what to do and how.
type Move struct {
	Source Source
	Target Target
	Actor  string // for the audit
	Rows   int    // in a slice

	Step func(context.Context, func(context.Context) error) error // bounds a call
	Said func(done string, n, of int64)                           // hears how far it has come
}

// A Report is what the target has at the end, by table, and how many of its messages this run stored.
type Report struct {
	Rows   map[string]int64
	Stored int
}

// Run moves everything, compares it, and only then lets the target lease. It may be run again whatever ended it; the source stays paused.
func (m Move) Run(ctx context.Context) (Report, error) {
	report := Report{Rows: map[string]int64{}}
	size, err := call(ctx, m, m.Source.MoveSize)
	if err != nil {
		return report, err
	}
	if size.Batches > 0 {
		return report, &Refusal{fmt.Sprintf("%d batches are not completed, and would never be where their messages go: nothing was moved, and nothing is paused; "+
			"let them complete, or cancel them (fencepost batch cancel), and run this again", size.Batches)}
	}
	if err := m.check(ctx, size); err != nil {
		return report, err
	}
	leases, err := call(ctx, m, func(ctx context.Context) (Leases, error) { return m.Source.MoveHold(ctx, m.Actor, Reason) })
	if err != nil {
		return report, err
	}
	if leases.Live > 0 {
		return report, &Refusal{fmt.Sprintf("%d messages are leased, until %s at the latest: nothing was moved; no sender leases more, for the file is paused now: wait or stop them, and run this again",
			leases.Live, leases.Until.UTC().Format(time.RFC3339))}
	}
	if err := m.reserve(ctx); err != nil {
		return report, err
	}
	err = m.slices(ctx, "moved", size, func(ctx context.Context, slice Slice) error {
		stored, err := m.Target.MoveIn(ctx, slice)
		report.Stored += stored
		return err
	})
	if err != nil {
		return report, err
	}
	err = m.slices(ctx, "compared", size, func(ctx context.Context, slice Slice) error {
		compared, err := m.Target.MoveCompare(ctx, slice)
		for _, c := range compared {
			if c.Strange != 0 || c.Held != c.Given {
				return fmt.Errorf("the two differ in table %s after id %d: %s, for one of them was changed meanwhile; the database stays paused: "+
					"stop what changed it and run this again", c.Table, slice.After, c)
			}
			if report.Rows[c.Table] += c.Given; c.Table == "pause" || c.Table == "reader" {
				report.Rows[c.Table] = c.Given // every slice has all
			}
		}
		return err
	})
	if err != nil {
		return report, err
	}
	// Once more, for what the source gave to what it has lost since.
	if err := m.reserve(ctx); err != nil {
		return report, err
	}
	lifted, err := call(ctx, m, func(ctx context.Context) (bool, error) { return m.Target.MoveResume(ctx, Reason) })
	if lifted {
		report.Rows["pause"]--
	}
	return report, err
}

// check refuses a target that holds what is not the source's. What a run before left there is.
func (m Move) check(ctx context.Context, size Size) error {
	empty, err := call(ctx, m, m.Target.MoveEmpty)
	if err != nil || empty {
		return err
	}
	return m.slices(ctx, "checked", size, func(ctx context.Context, slice Slice) error {
		compared, err := m.Target.MoveCompare(ctx, slice)
		for _, c := range compared {
			if c.Strange != 0 {
				return &Refusal{fmt.Sprintf("nothing was moved: the database holds something that is not as in the file (%s %d): it is of another outbox, or one of the two was changed since it was moved. "+
					"Move into tables that are empty", c.Table, c.Strange)}
			}
		}
		return err
	})
}

func (m Move) reserve(ctx context.Context) error {
	return m.Step(ctx, func(ctx context.Context) error {
		size, err := m.Source.MoveSize(ctx)
		if err != nil {
			return err
		}
		return m.Target.MoveReserve(ctx, size)
	})
}

// slices goes through the source from its first id to its last, and on to where it has none.
func (m Move) slices(ctx context.Context, done string, size Size, visit func(context.Context, Slice) error) error {
	var slice Slice
	for seen := int64(0); !slice.last(); seen += slice.Count {
		err := m.Step(ctx, func(ctx context.Context) (err error) {
			if slice, err = m.Source.MoveOut(ctx, slice.Upto, m.Rows); err != nil {
				return err
			}
			return visit(ctx, slice)
		})
		if err != nil {
			return err
		}
		m.Said(done, seen+slice.Count, size.Rows)
	}
	return nil
}

func call[T any](ctx context.Context, m Move, do func(context.Context) (T, error)) (result T, err error) {
	err = m.Step(ctx, func(ctx context.Context) error {
		result, err = do(ctx)
		return err
	})
	return result, err
}
