// Package events records facts, derives effects from them, and reads them back.
//
// A Log appends events in the caller's transaction. Its subscriptions derive effects from them in that same transaction (package outbox), which
// senders perform later; Log.Source reads the fact back that an effect came from. A Bus delivers each event to every handler that subscribed to
// its type, each in a transaction of its own together with its receipt. Log.Read pages the stream of all events in one order without gaps, and a
// Feed follows it.
package events
