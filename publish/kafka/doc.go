// Package kafkapub publishes messages of an outbox to topics of Kafka: its Handler is one of a sender.
//
//	publisher, err := kafkapub.New(client, kafkapub.Config{})
//	s, err := sender.New(box, events, sender.Config{Handlers: sender.Handlers{"order.paid": publisher.Handler()}})
//
// The payload is produced byte for byte, by an idempotent producer that waits for all in-sync replicas, under the message's order key, or else its key.
//
// # Duplicates
//
// An idempotent producer numbers what it sends, so that its own retries are stored once and in order. It gives no more than that: the numbers
// belong to one client, a broker knows nothing of ids, and a message that another process, or this one after a restart, performs again is stored again. So
// is one whose lease was lost, or whose settle was. Consumers that must not act twice remember the header fencepost-id, which is the same each time.
//
// Within one Publisher there is a little more: a record that was not answered in time stays with the client, which goes on trying, and the next attempt of
// its message waits for that record in place of producing another. Nor is a new record handed to a client whose last one was not answered until a broker answers.
//
// A Publisher owns nothing and closes nothing: the client is the caller's.
package kafkapub
