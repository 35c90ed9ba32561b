package idempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
)

type contextKey struct{}

// ClaimOf is the claim that a handler works under; ok is false outside of the middleware, and for a request without a key. The middleware ends it.
func ClaimOf(ctx context.Context) (claim ledger.Claim, ok bool) {
	claim, ok = ctx.Value(contextKey{}).(ledger.Claim)
	return claim, ok
}

type handler struct {
	ledger *ledger.Ledger
	tenant Tenant
	config Config
	next   http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	keys := r.Header.Values(h.config.Header)
	if !slices.Contains(h.config.Methods, r.Method) || len(keys) == 0 && h.config.Optional {
		h.next.ServeHTTP(w, r)
		return
	}
	request, body, problem := h.read(w, r, keys)
	if problem != nil {
		problem.write(w)
		return
	}
	began := time.Now() // before the database's clock is read, so that the handler's time is out no later than its claim's
	result, err := h.claim(r.Context(), request)
	switch {
	case errors.Is(err, ledger.ErrConflict):
		refused{http.StatusUnprocessableEntity, h.config.Header + " was used for another request", 0}.write(w)
	case errors.Is(err, outbox.ErrInvalid): // the tenant or the scope, since the key was read
		h.mistaken(r.Context(), err.Error()).write(w)
	case err != nil:
		h.broken(r.Context(), w, "idempotency key not claimed", err)
	case result.Status == ledger.InProgress && result.Over: // Config.Untaken
		refused{http.StatusConflict, "nobody knows what became of the first request with this " + h.config.Header, 0}.write(w)
	case result.Status == ledger.InProgress:
		h.inProgress(w)
	case result.Rejected():
		refused{http.StatusConflict, h.config.Header + " is of a request that was rejected", 0}.write(w)
	case result.Status == ledger.Duplicate:
		a, err := decode(result.Result)
		if err != nil {
			h.log(r.Context(), "stored answer not replayed", err)
			refused{http.StatusInternalServerError, "the stored answer cannot be read", 0}.write(w)
			return
		}
		a.replay(w)
	default:
		h.perform(w, r, body, result.Claim, began)
	}
}

// read finds out whose request it is, and its key and content.
func (h *handler) read(w http.ResponseWriter, r *http.Request, keys []string) (request ledger.Request, body []byte, problem *refused) {
	tenant, ok := h.tenant(r)
	if !ok {
		return request, nil, &refused{http.StatusForbidden, "nobody's request", 0}
	}
	key, wrong := parseKey(keys)
	if wrong != "" {
		return request, nil, &refused{http.StatusBadRequest, h.config.Header + " " + wrong, 0}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return request, nil, &refused{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit), 0}
	}
	if err != nil {
		return request, nil, &refused{http.StatusBadRequest, "the body cannot be read", 0}
	}
	if len(r.PostForm) > 0 || r.MultipartForm != nil || len(body) == 0 && r.ContentLength > 0 {
		// The body is gone, and with it the content that the key stands for.
		return request, nil, h.mistaken(r.Context(), "the body was read before the key was looked at, by the tenant's function or an outer handler")
	}
	request = ledger.Request{Tenant: tenant, Scope: h.config.Scope(withBody(r.WithContext(r.Context()), body)), Key: key, Digest: ledger.DigestOf(
		// The target as the client sent it and as it is now: outer handlers strip prefixes, and send parts of a request on as requests.
		[]byte(r.Method), []byte(strings.ToLower(r.Host)), []byte(r.RequestURI), []byte(r.URL.RequestURI()), []byte(r.Header.Get("Content-Type")), body,
	)}
	if c, ok := ClaimOf(r.Context()); ok && c.Tenant == request.Tenant && c.Scope == request.Scope && c.Key == request.Key {
		return request, nil, h.mistaken(r.Context(), "the request is under its claim already: the middleware is applied twice, and would wait for itself")
	}
	return request, body, nil
}

func (h *handler) claim(ctx context.Context, request ledger.Request) (result ledger.Result, err error) {
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	claim := h.ledger.Take
	if h.config.Untaken {
		claim = h.ledger.Claim
	}
	err = h.inTx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		result, err = claim(ctx, tx, request)
		return err
	})
	if err != nil && result.Status == ledger.Claimed { // the answer to its commit may be all that was lost
		h.free(ctx, result.Claim, "it was not known to be claimed, and the handler was not called")
	}
	return result, err
}

// perform calls the handler, stores what it answers, and sends that.
func (h *handler) perform(w http.ResponseWriter, r *http.Request, body []byte, claim ledger.Claim, began time.Time) {
	ctx := context.WithValue(context.WithoutCancel(r.Context()), contextKey{}, claim)
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(h.ledger.Config().Hold), ledger.ErrStale)
	defer cancel()
	rec := &recorder{client: w, limit: h.ledger.Config().MaxResult, header: w.Header().Clone()}
	completed := false // or not known to be
	rec.store = func() error {
		if !final(rec.status) {
			return nil // its key is held while the handler is at work
		}
		completed = true
		answer := rec.encode(h.config.Headers, rec.limit)
		return h.complete(ctx, claim, answer)
	}
	defer func() {
		if !rec.ended && !completed { // a panic, which goes on, or Goexit
			h.unknown(ctx, claim, "the handler panicked")
		}
	}()
	h.next.ServeHTTP(rec, withBody(r.WithContext(ctx), body))
	rec.ended = true

	if rec.status == 0 && ctx.Err() != nil {
		h.unknown(ctx, claim, "the handler gave no answer in its time")
		h.unavailable(w)
		return
	}
	rec.WriteHeader(http.StatusOK) // unless it has said another
	if end := fmt.Sprintf("the handler answered %d", rec.status); undone(rec.status) {
		h.free(ctx, claim, end)
	} else if !final(rec.status) {
		h.unknown(ctx, claim, end)
	}
	switch err := rec.pass(); {
	case errors.Is(err, ledger.ErrStale): // taken over: the other's answer counts
		h.log(ctx, "idempotency key was lost to another", err)
		h.inProgress(w)
	case err != nil:
		h.broken(ctx, w, "answer not stored", err)
	}
}

// withBody is the request with the body that was read from it.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return r
}

// complete stores an answer. It tries more than once: what a broken connection loses here makes the handler run again.
func (h *handler) complete(ctx context.Context, claim ledger.Claim, answer []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	var lost error
	for range completeTries {
		err := h.ledger.InTx(ctx, func(tx db.Tx) error { return h.ledger.Complete(ctx, tx, claim, answer) })
		if lost != nil && errors.Is(err, ledger.ErrStale) {
			if s, err := h.ledger.Find(ctx, claim.Tenant, claim.Scope, claim.Key); err == nil && s.State == ledger.StateCompleted && s.Epoch == claim.Epoch {
				return nil // by a try before, whose answer was lost
			}
		}
		if err == nil || errors.Is(err, ledger.ErrStale) {
			return err
		}
		lost = err
	}
	return lost
}

// unknown ends a handler that may have acted or not. Who takes keys over may as well have this one at once: its holder has returned.
func (h *handler) unknown(ctx context.Context, claim ledger.Claim, end string) {
	if h.config.Untaken {
		h.log(ctx, "idempotency key left to be decided", fmt.Errorf("%v: %s, and may have acted", claim, end))
		return
	}
	h.free(ctx, claim, end)
}

// free lets the request be tried again. When that fails the claim runs out by itself; one that is stale is not this handler's to free.
func (h *handler) free(ctx context.Context, claim ledger.Claim, reason string) {
	err := h.inTx(ctx, func(ctx context.Context, tx db.Tx) error { return h.ledger.Fail(ctx, tx, claim, reason) })
	if err != nil && !errors.Is(err, ledger.ErrStale) {
		h.log(ctx, "idempotency key not freed", err)
	}
}

func (h *handler) inTx(ctx context.Context, do func(context.Context, db.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	return h.ledger.InTx(ctx, func(tx db.Tx) error { return do(ctx, tx) })
}

// mistaken answers a request that the service itself has spoilt. The handler is not called.
func (h *handler) mistaken(ctx context.Context, mistake string) *refused {
	h.log(ctx, "request with an idempotency key refused", errors.New(mistake))
	return &refused{http.StatusInternalServerError, "requests with " + h.config.Header + " cannot be served here", 0}
}

func (h *handler) inProgress(w http.ResponseWriter) {
	refused{http.StatusConflict, "the first request with this " + h.config.Header + " is still at work", h.config.RetryAfter}.write(w)
}

func (h *handler) unavailable(w http.ResponseWriter) {
	refused{http.StatusServiceUnavailable, "try again", h.config.RetryAfter}.write(w)
}

func (h *handler) broken(ctx context.Context, w http.ResponseWriter, what string, err error) {
	h.log(ctx, what, err)
	h.unavailable(w)
}

func (h *handler) log(ctx context.Context, what string, err error) {
	h.config.Logger.ErrorContext(ctx, what, slog.Any("error", err))
}
