package memdb

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Age lets time pass for all that is committed: it moves every stored instant back. Never and forever stay what they are.
func (s *Store) Age(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	back := func(t *time.Time) {
		if !t.Equal(db.Never) && !t.Equal(tables.Forever) {
			*t = t.Add(-d)
		}
	}
	age(s.messages, func(m *tables.Message) { back(&m.CreatedAt) })
	age(s.queue, func(q *tables.Queue) {
		back(&q.DueAt)
		back(&q.BornAt)
		back(&q.ExpiresAt)
		back(&q.LeasedUntil)
		back(&q.ReplayedAt)
	})
	age(s.orderLeases, func(o *tables.OrderLease) { back(&o.LeasedUntil) })
	age(s.settlements, func(r *tables.Settlement) {
		back(&r.SettledAt)
		back(&r.ReplayedAt)
	})
	age(s.workers, func(w *tables.Worker) {
		back(&w.StartedAt)
		back(&w.SeenAt)
	})
	age(s.pauses, func(p *tables.Pause) { back(&p.PausedAt) })
	age(s.audits, func(a *tables.Audit) { back(&a.At) })
	age(s.events, func(e *tables.Event) { back(&e.RecordedAt) })
	age(s.readers, func(r *tables.Reader) { back(&r.SavedAt) })
	age(s.claims, func(c *tables.Claim) {
		back(&c.ClaimedAt)
		back(&c.HeldUntil)
		back(&c.EndedAt)
	})
	age(s.credentials, func(c *tables.Credential) {
		back(&c.CreatedAt)
		back(&c.RevokedAt)
	})
	age(s.batches, func(b *tables.Batch) {
		back(&b.CreatedAt)
		back(&b.SealedAt)
		back(&b.CompletedAt)
	})
}

func age[K comparable, R any](t table[K, R], change func(*R)) {
	for key, row := range t.rows {
		change(&row)
		t.rows[key] = row
	}
}
