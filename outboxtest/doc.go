// Package outboxtest helps to test programs that use an outbox.
//
// New gives a box over a store in memory, which behaves as the drivers do and passes the same conformance suite; InTx and Enqueue store
// effects in it, and a sender performs them, with RunOnce for instance. Its clock is time.Now: in a bubble of testing/synctest leases, retries
// and ages follow the bubble's clock, and elsewhere Age lets time pass.
//
// RequireEnqueued and Redeliver also serve tests on a real database, which the store in memory does not replace: what commits together, and
// what a crash leaves, is the database's to show.
package outboxtest
