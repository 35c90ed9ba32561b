// Package natspub publishes messages of an outbox to a stream of NATS JetStream: its Handler is one of a sender.
//
//	publisher, err := natspub.New(js, natspub.Config{})
//	s, err := sender.New(box, events, sender.Config{Handlers: sender.Handlers{"order.paid": publisher.Handler()}})
//
// The payload is published byte for byte, with publish.MessageID as the id by which the stream deduplicates (Nats-Msg-Id): within the stream's Duplicates
// window, 2 minutes unless it is configured, a message that is sent again is stored once. After the window it is stored again: a consumer that must not
// act twice remembers the header fencepost-id, and the window should be longer than the outages and retries that are to be bridged. A key that is free again
// within the window (outbox.Policy.DropDelivered) must not be used for something else, which the stream would drop.
//
// A Publisher starts no goroutine, owns nothing and closes nothing: the connection is the caller's.
package natspub
