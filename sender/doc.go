// Package sender performs the messages of an outbox: it leases those that are due, hands them to handlers, keeps the leases while they run,
// and settles what came of them.
//
// Any number of senders in any number of processes share the work; nothing depends on one of them or on a host's clock. A message is handed to
// one handler at a time as far as the database can tell. A handler whose lease ends is told so through its context no later than another
// sender can take the message over, but it must heed it: performing an effect at least once, never exactly once, is what can be promised. Hand
// Message.Key downstream as the idempotency key, or Message.Fence to refuse a handler that was overtaken.
//
// What the package does not do: it starts no goroutine before Run and leaves none behind after it, holds no connection while a handler runs,
// and never decides how often a message is tried (outbox.Policy does).
package sender
