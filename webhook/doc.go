// Package webhook sends and receives webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com).
//
// # Out
//
// A Poster performs messages of an outbox by posting their payloads, byte for byte and signed. Its Do is a handler of a sender:
//
//	poster, err := webhook.NewPoster(endpointOf, webhook.PosterConfig{})
//	s, err := sender.New(box, customers, sender.Config{Handlers: sender.Handlers{"invoice.paid": {Do: poster.Do}}})
//
// It maps what comes of a request to an outcome (see PosterConfig.Statuses), follows no redirect, uses no proxy of the environment, and connects to
// public addresses only, whatever a name resolves to.
//
// # In
//
// Verify checks a signature over the bytes as they came. A Receiver serves HTTP: it reads the body once, verifies it, and then, as a check of its own,
// claims (source, id) in the ledger. What the program records of the webhook and the end of the claim are one transaction, so that a webhook which
// comes a hundred times is recorded once.
//
//	receiver, err := webhook.NewReceiver(l, origin, record, webhook.ReceiverConfig{})
//	http.Handle("/hooks/bank", receiver)
//
//	not POST                               405
//	a body over ReceiverConfig.MaxBody     413
//	nobody's, or it does not verify        401
//	the first of its id                    what Record makes of it, committed before it is answered; 204 by default
//	the same again                         the stored answer, with Idempotency-Replayed: true
//	another body under the id              409
//	Record failed                          500; nothing was recorded, and it may come again
//	the database does not answer           503, or 500 once Record was called; the same, unless only the answer to the commit was lost
//
// A signature that is too old or too new is refused either way. The digest that the id stands for is that of the body alone, since a sender signs
// anew each time it sends.
package webhook
