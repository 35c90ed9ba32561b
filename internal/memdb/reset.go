package memdb

// Reset forgets all that is committed. Ids go on.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.messages.rows)
	clear(s.queue.rows)
	clear(s.orderLeases.rows)
	clear(s.settlements.rows)
	clear(s.workers.rows)
	clear(s.pauses.rows)
	clear(s.audits.rows)
	clear(s.events.rows)
	clear(s.readers.rows)
	clear(s.claims.rows)
	clear(s.credentials.rows)
	clear(s.scopes.rows)
	clear(s.batches.rows)
	clear(s.batchRows.rows)
	clear(s.rowOf)
	clear(s.extents)
	for key, claim := range s.keys {
		if claim.tx == nil {
			delete(s.keys, key)
		}
	}
}
