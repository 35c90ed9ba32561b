package memdb

import (
	"cmp"

	"github.com/fencepost-go/fencepost/internal/tables"
)

// Dump returns all that is committed. Its byte slices belong to the store.
func (s *Store) Dump() tables.Dump {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tables.Dump{
		Now:      clock(),
		Messages: s.messages.sorted(func(a, b tables.Message) int { return cmp.Compare(a.ID, b.ID) }),
		Queue:    s.queue.sorted(byMessage),
		OrderLeases: s.orderLeases.sorted(func(a, b tables.OrderLease) int {
			return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Tenant, b.Tenant),
				cmp.Compare(a.OrderKey, b.OrderKey))
		}),
		Settlements: s.settlements.sorted(byID),
		Workers:     s.workers.sorted(func(a, b tables.Worker) int { return cmp.Compare(a.ID, b.ID) }),
		Pauses:      s.pauses.sorted(comparePauses),
		Audits:      s.audits.sorted(func(a, b tables.Audit) int { return cmp.Compare(a.ID, b.ID) }),
		Events:      s.events.sorted(func(a, b tables.Event) int { return cmp.Compare(a.Position, b.Position) }),
		Readers:     s.readers.sorted(func(a, b tables.Reader) int { return cmp.Compare(a.Name, b.Name) }),
		Claims:      s.claims.sorted(compareClaims),
		Credentials: s.credentials.sorted(func(a, b tables.Credential) int { return cmp.Compare(a.Name, b.Name) }),
		Scopes:      s.scopes.sorted(compareScopes),
		Batches:     s.batches.sorted(func(a, b tables.Batch) int { return cmp.Compare(a.ID, b.ID) }),
		BatchRows: s.batchRows.sorted(func(a, b tables.BatchRow) int {
			return cmp.Or(cmp.Compare(a.BatchID, b.BatchID), cmp.Compare(a.Number, b.Number))
		}),
	}
}

func comparePauses(a, b tables.Pause) int {
	return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tenant, b.Tenant))
}

func compareClaims(a, b tables.Claim) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
}
