// Package ledger claims a key before the work that it stands for, in the caller's transaction, and keeps what came of it: for work that comes in
// (a request, a message of somebody else's queue) and for effects on things that cannot tell a duplicate themselves.
//
// Ledger.Claim says that the key is the caller's now; or that the work was done, with the result that Ledger.Complete stored; or that
// somebody is at it; or that the key stands for other content. What decides is the primary key (tenant, scope, key) in the database, and the
// digest that is stored with it.
//
// # Two ways to use it
//
// In one transaction: claim, work, complete, commit. What the work wrote and its end in the ledger are there together or not at
// all, so the work is done exactly once. Others that claim the key wait until that transaction ends.
//
// In two: claim and commit (Ledger.InTx), work outside of any transaction, then complete and commit. That is for work which a database cannot roll back, and it is
// done at least once, not exactly once. A holder that dies leaves a claim that is held until its time is out (Config.Hold). After that it can
// be taken over (Ledger.Take), but nobody knows how far the old holder came: it may have acted, and one that is only slow may act still. So make the
// work itself safe to repeat: hand the key downstream, or (key, Claim.Epoch) to a system that remembers the highest epoch and refuses a lower one. What
// the old holder reports after that is ErrStale and changes nothing.
//
// # When the database does not answer
//
// Every call fails closed: an error of Claim or Take is no permission to work, and an error of Complete is no word that nothing was stored. After a
// commit whose answer was lost, Find tells what stands: an end with the epoch of one's own claim is one's own.
package ledger
