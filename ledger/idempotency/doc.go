// Package idempotency serves the Idempotency-Key header of HTTP (draft-ietf-httpapi-idempotency-key-header): a request that a client sends again
// under the key of the first is answered with the first one's answer, and its handler is not called again.
//
//	serve, err := idempotency.New(l, tenantOf, idempotency.Config{})
//	http.Handle("/payments", serve(payments))
//
// A key belongs to its tenant, which the caller's function takes from the request's credentials: nobody gets the answer to another's request. Its
// content is the method, the path with its query, the content type and the body.
//
//	no key, a malformed one, or two        400, unless Config.Optional and there is none
//	no tenant                              403
//	a body over Config.MaxBody             413
//	the first request under its key        the handler, whose answer is stored before it is sent
//	the same again, answered before        the stored answer, with Idempotency-Replayed: true
//	the same again, still at work          409 with Retry-After
//	other content under the key            422
//	the database does not answer           503 with Retry-After; the handler was not called, or its answer is not known to be stored
//
// An answer of the handler is final, and stored, unless it says that the request can be tried again: 5xx, 408, 425 and 429, and a panic, free the
// key for the same content. So does a handler that let its time pass (ledger.Config.Hold) without an answer. An answer that is too large for
// the ledger (ledger.Config.MaxResult) is replayed without its body, and says so: Idempotency-Replayed: true; body=omitted.
//
// # At least once
//
// The handler runs to its end even if the client goes away, and its context ends when its claim's time is out. When its process dies in between, the key
// is held until that time; then the next request under it takes the key over, and the handler runs again although the first may have
// acted. ClaimOf(ctx).Epoch is above 1 then. A handler whose effects are not all in one database hands (key, epoch) on. Config.Untaken answers
// such requests with 409 for good instead, until somebody decides by ledger.Ledger.Take.
package idempotency
