package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fencepost-go/fencepost/internal/eventstream"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// ProgressConfig of a ProgressHandler. Zero fields take their defaults; negative ones are refused.
type ProgressConfig struct {
	// Every is how often progress is told at most: see Batches.Watch. Default DefaultEvery, between 100 ms and 1 h.
	Every time.Duration
	// Heartbeat is how often a comment line is sent, so that proxies keep the connection and a client that is gone is noticed. Default 15 s,
	// between 100 ms and 1 h.
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take nothing of what it was sent before it is cut off. Default 10 s, between 10 ms and 1 h.
	WriteTimeout time.Duration
	// Lifetime ends a stream, so that the client comes back and is authorised anew. Default 1 h, between 100 ms and 30 days.
	Lifetime time.Duration
	// Challenge is the WWW-Authenticate header of a 401. Default "Bearer".
	Challenge string
}

// A ProgressHandler serves the progress of batches as server-sent events. It may serve any number of clients at once.
type ProgressHandler struct {
	batches   *Batches
	authorise func(*http.Request) (outbox.Scope, int64, error)
	every     time.Duration
	config    eventstream.Config
	closed    context.Context
	close     context.CancelFunc
}

// NewProgressHandler makes a ProgressHandler, reporting every problem at once as outbox.ErrInvalid. authorise is asked once for each request, before anything else:
// it says which batch the request is about, and the scope in which the client may see it, which nothing in the request widens.
func NewProgressHandler(b *Batches, authorise func(*http.Request) (scope outbox.Scope, id int64, err error), config ProgressConfig) (*ProgressHandler, error) {
	var found refusal.Problems
	if b == nil {
		found.Add("batches", "is nil")
	}
	if authorise == nil {
		found.Add("authorise", "is nil: somebody has to say who may see what")
	}
	h := &ProgressHandler{batches: b, authorise: authorise, every: cmp.Or(config.Every, DefaultEvery), config: eventstream.Config{
		Heartbeat: config.Heartbeat, WriteTimeout: config.WriteTimeout, Lifetime: config.Lifetime, Challenge: config.Challenge,
	}}
	found.Lasting("Every", h.every, leastEvery, mostEvery)
	h.config.Fill(&found)
	if err := found.Err(); err != nil {
		return nil, failed("new progress handler", err)
	}
	h.closed, h.close = context.WithCancel(context.Background())
	return h, nil
}

// Close ends every stream, and new requests are answered with 503: register it with http.Server.RegisterOnShutdown.
func (h *ProgressHandler) Close() { h.close() }

var notFound = eventstream.Problem{
	Status: http.StatusNotFound, Code: "not_found", Message: "There is no such batch for who asks.", Action: "Look at the id; the batch may have been removed.",
}

// ServeHTTP answers GET with the progress as it is and then as it changes, each a Progress as one line of JSON, until the batch is completed. A client that
// comes back with the id of that last event, as browsers do by themselves, is answered with 204, which tells it to stay away; after a rerun it is served again.
//
// Before the first byte: 401 and 403 by the authoriser, 404 where there is no such batch in its scope, 503 for a database that does not answer.
func (h *ProgressHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if eventstream.NotGet(w, r) {
		return
	}
	scope, id, err := h.authorise(r)
	if errors.Is(err, ErrUnauthenticated) {
		eventstream.Unauthenticated(w, h.config.Challenge)
		return
	} else if err != nil {
		eventstream.Forbidden.Answer(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.config.Lifetime)
	defer cancel()
	defer context.AfterFunc(h.closed, cancel)()
	if h.closed.Err() != nil {
		eventstream.Unavailable(w)
		return
	}
	log := h.batches.box.Logger()
	stream, err := eventstream.New(w, h.config, nil, cancel)
	if err != nil {
		log.ErrorContext(ctx, "cannot serve progress: a ResponseWriter in between has neither deadlines nor Unwrap", "error", err)
		eventstream.Unsupported.Answer(w)
		return
	}
	defer stream.End()
	for p, err := range h.batches.Watch(ctx, scope, id, h.every) {
		switch begun := stream.Begun(); {
		case err == nil && !begun && p.Completed() && r.Header.Get("Last-Event-ID") == lastID(p):
			w.WriteHeader(http.StatusNoContent)
			return
		case err == nil:
			if h.send(stream, p) != nil {
				return
			}
		case begun && ctx.Err() == nil:
			log.WarnContext(ctx, "cannot read progress for a client", "error", err) // and trying again, unless the batch is gone
		case !begun:
			h.answer(ctx, w, err)
			return
		}
	}
}

// lastID is the id of the event that says that a run is completed; "" for any other.
func lastID(p Progress) string {
	if !p.Completed() {
		return ""
	}
	return fmt.Sprintf("completed-%d", p.Run)
}

func (h *ProgressHandler) send(stream *eventstream.Stream, p Progress) error {
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return stream.Send(func(out *eventstream.Out, _ bool) {
		if id := lastID(p); id != "" {
			fmt.Fprintf(out, "id: %s\n", id)
		}
		fmt.Fprintf(out, "data: %s\n\n", line)
	})
}

// answer answers a request whose stream has not begun.
func (h *ProgressHandler) answer(ctx context.Context, w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrNotFound):
		notFound.Answer(w)
	case errors.Is(err, outbox.ErrInvalid): // of no tenant, for example
		h.batches.box.Logger().WarnContext(ctx, "the authoriser of progress gave a scope that cannot be used", "error", err)
		eventstream.Forbidden.Answer(w)
	default:
		if ctx.Err() == nil {
			h.batches.box.Logger().WarnContext(ctx, "cannot read progress for a client", "error", err)
		}
		eventstream.Unavailable(w)
	}
}
