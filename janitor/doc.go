// Package janitor keeps a box small: it removes settled messages whose retention is over, events, claims and batches too, settles as expired what
// nobody ever leased, and measures what waits. Run it in every process, or call RunOnce from cron; no sender need be alive for it.
//
// It works in bounded steps, oldest first, with a pause after each, so that no statement runs long and senders keep their pace. Of several
// janitors of one schema one is at a step at a time: who meets another leaves the rest to it, and measures.
//
// The key of a message is reserved as long as the message is retained, so the retention is also the window in which a repeated effect is
// found to be a duplicate.
package janitor
