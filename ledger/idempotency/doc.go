// Package idempotency serves the Idempotency-Key header of HTTP (draft-ietf-httpapi-idempotency-key-header): a request that a client sends again
// under the key of the first is answered with the first one's answer, and its handler is not called again.
//
//	serve, err := idempotency.New(l, tenantOf, idempotency.Config{})
//	http.Handle("/payments", serve(payments))
//
// A key belongs to its tenant, which the caller's function takes from the request's credentials: nobody gets the answer to another's request. Its
// content is the method, the host, the path with its query as the client sent them and as outer handlers (http.StripPrefix) left them, the content type and the
// body.
//
//	no key, a malformed one, or two        400, unless Config.Optional and there is none
//	no tenant                              403
//	a body over Config.MaxBody             413
//	the first request under its key        the handler, whose answer is stored before it is sent
//	the same again, answered before        the stored answer, with Idempotency-Replayed: true
//	the same again, still at work          409 with Retry-After
//	other content under the key            422
//	a mistake of the service               500, and a record at ERROR: a tenant or scope that is no name, a body that was read too early, the
//	                                       middleware applied twice
//	the database does not answer           503 with Retry-After; the handler was not called, or its answer is not known to be stored
//
// # What becomes of the key
//
//	the handler answers 2xx, 3xx, 4xx         final: stored, and replayed
//	but 401, 403, 408, 421, 425 or 429        nothing was done: the key is free for the same content
//	5xx, or panics, or has no answer in time  unknown: free too, or with Config.Untaken held until somebody decides
//
// A refusal that judged the request stays one: a late copy is not performed after its sender was told no, also where a state that has passed since was the
// reason (404, 409, 412). A request that was turned away for who sent it, when or where was not judged: the client may log in, wait, and send it again. No 5xx says
// that nothing was done: what failed may have been the answer only. A handler that knows it did nothing says so with 429. http.TimeoutHandler, which answers 503
// while its handler goes on, belongs around this middleware, not inside.
//
// # What is stored
//
// The status, the body and Config.Headers, byte for byte. An answer that is too large for the ledger (ledger.Config.MaxResult) is stored without its body and the
// headers that describe one (Content-Type and the like), or without any if even those are too large, and its replay says so: Idempotency-Replayed: true; body=omitted.
//
// Until it is stored an answer waits in memory, but no more of a body than MaxResult: at that size it is stored as omitted, which makes it final even if the
// handler panics later, and is passed on as the handler writes it. The handler cannot flush or hijack, its 1xx are not sent, and its trailers are sent but not
// replayed.
//
// # At least once
//
// The handler runs to its end even if the client goes away, and its context ends when its claim's time is out (ledger.Config.Hold). When its process dies in
// between, the key is held until that time; then the next request under it takes the key over, and the handler runs again although the first may have
// acted; after an unknown end it does so without that wait. ClaimOf(ctx).Epoch is above 1 then. A handler whose effects are not all in one database
// hands (key, epoch) on. With Config.Untaken no handler runs where one may have acted: such keys answer 409 until somebody decides by ledger.Ledger.Take, and
// Complete or Fail.
package idempotency
