// Package publish has what publishers to brokers share: the identity of a published message, and its headers.
//
// The publishers are modules of their own, so that a program requires and links only the client of the broker it uses: publish/nats for NATS
// JetStream, publish/kafka for Kafka. A publisher for another broker can be built on this package in the same way: send Message.Payload as it is, with
// Headers, under MessageID where the broker deduplicates.
package publish
