// Package outbox records effects in the transaction of the change that causes them, and hands them out as messages under fenced leases until
// each has an end that can be read back.
//
// A producer calls Box.Enqueue with its own transaction: the effect exists if and only if that commits. A worker leases the messages of a
// Consumer, performs them, and settles each with an Outcome; package sender is a worker that is ready to use, and package janitor removes
// what was settled long ago. An effect is performed at least once. It can be performed twice when a worker dies, or loses its lease, between
// performing and settling: hand Message.Key downstream as an idempotency key, or Message.Fence to a system that can compare.
//
// # What a lease promises
//
// A lease is exclusive and limited in time, by the database's clock. It carries a random token that no caller sees. A settle, a renewal or a
// release whose token is not the current one changes nothing: a settle answers StaleLease. An attempt is counted when the message is leased,
// so that a message that kills its worker comes to an end too.
//
// # What ends a message
//
// Delivered; dead, when its handler says so (Permanent, Moot), its attempts or its age are spent; cancelled by an operator; or expired, when
// nobody ever leased it. An outcome that is not known (Unknown) parks the message until an operator resolves it, unless its kind can
// reconcile. Terminal is final: only a replay of a dead message or a purge changes it.
//
// # What the package does not do
//
// It owns no connection, no transaction and no migration: those are the store's (db/pgxdb, db/sqldb), the caller's and package schema's. It
// leaves no goroutine behind. It decodes no payload. It writes no SQL.
//
// # Errors
//
// Whatever is wrong with an argument is found before any statement is sent, all of it at once, as ErrInvalid: the caller's transaction is
// untouched. Each call says whether it can be retried; one that can may be repeated after any error that is not ErrInvalid. Every call
// returns at once, without a statement, when its context is over.
package outbox
