package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/eventstream"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// ErrUnauthenticated is what the authoriser returns for a request of nobody it knows: the answer is 401. Any other error of it is 403.
var ErrUnauthenticated = errors.New("unauthenticated")

// Config of a Handler. Zero fields take their defaults; negative ones are refused.
type Config struct {
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

const failedPause = time.Second

// A Handler serves the stream. It may serve any number of clients at once.
type Handler struct {
	feed      *events.Feed
	authorise func(*http.Request) (events.Filter, error)
	config    eventstream.Config
	closed    context.Context
	close     context.CancelFunc
}

// New makes a Handler over a feed, whose Run must be running, and reports every problem at once as outbox.ErrInvalid. authorise is asked once for
// each request, before anything else; the Filter it returns is what the client gets, and nothing in the request widens it.
func New(feed *events.Feed, authorise func(*http.Request) (events.Filter, error), config Config) (*Handler, error) {
	var found refusal.Problems
	if feed == nil {
		found.Add("feed", "is nil")
	}
	if authorise == nil {
		found.Add("authorise", "is nil: somebody has to say who may read what")
	}
	filled := eventstream.Config(config)
	filled.Fill(&found)
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sse: new: %w", err)
	}
	h := &Handler{feed: feed, authorise: authorise, config: filled}
	h.closed, h.close = context.WithCancel(context.Background())
	return h, nil
}

// Close ends every stream, and new requests are answered with 503. http.Server.Shutdown waits for handlers without telling them: register Close with
// RegisterOnShutdown, or end the context of the server's BaseContext, which does the same. Clients come back with the last id they have.
func (h *Handler) Close() { h.close() }

// ServeHTTP answers GET with the stream after the cursor in the Last-Event-ID header, else after that in the query (?after=CURSOR, or ?after=oldest),
// else from the end of now. Each event has its cursor as id and one line of JSON as data. A client that is gone, slow, or whose time is over is
// cut off; what it lacks follows the last id it has.
//
// Before the first byte: 401 and 403 by the authoriser, 400 for what is no cursor, 410 for a cursor that is unknown or expired, 503 for a database
// that does not answer; each with JSON that says what to do. While streaming a cursor can only expire, by forced retention, or become
// unknown, by a restored database: the event fencepost.cursor_expired or fencepost.cursor_unknown says so, and the stream ends.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if eventstream.NotGet(w, r) {
		return
	}
	filter, err := h.authorise(r)
	if errors.Is(err, ErrUnauthenticated) {
		eventstream.Unauthenticated(w, h.config.Challenge)
		return
	} else if err != nil {
		eventstream.Forbidden.Answer(w)
		return
	}
	place, fromEnd, err := placeOf(r)
	if err != nil {
		invalid.With(err).Answer(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.config.Lifetime)
	defer cancel()
	defer context.AfterFunc(h.closed, cancel)()
	if h.closed.Err() != nil {
		h.answer(h.closed, w, h.closed.Err())
		return
	}
	if fromEnd {
		place, err = h.feed.Log().End(ctx)
	}
	if err != nil {
		h.answer(ctx, w, err)
		return
	}
	c := &client{place: place}
	if c.Stream, err = eventstream.New(w, h.config, c.beside, cancel); err != nil {
		h.feed.Log().Box().Logger().ErrorContext(ctx, "cannot serve events: a ResponseWriter in between has neither deadlines nor Unwrap", "error", err)
		eventstream.Unsupported.Answer(w)
		return
	}
	defer c.End()
	for {
		err := h.feed.FollowPages(ctx, c.place, filter, c.page)
		switch {
		case !c.Begun():
			h.answer(ctx, w, err)
			return
		case ctx.Err() != nil, c.Broken():
			return
		case goneOf(err) != nil:
			c.gone(goneOf(err))
			return
		}
		h.feed.Log().Box().Logger().WarnContext(ctx, "cannot read the stream for a client; trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(failedPause):
		}
	}
}

// placeOf is where a request wants to begin.
func placeOf(r *http.Request) (place events.Cursor, fromEnd bool, err error) {
	if id := r.Header.Get("Last-Event-ID"); id != "" { // a browser that comes back sends the same query
		place, err = events.ParseCursor(id)
		return place, false, err
	}
	query, err := url.ParseQuery(r.URL.RawQuery) // Query would leave out what it cannot read
	if err != nil {
		return place, false, err
	}
	after, given := query["after"]
	switch {
	case !given:
		return place, true, nil
	case len(after) > 1:
		return place, false, errors.New("after is there twice")
	case after[0] == "":
		return place, false, errors.New("after is empty")
	case after[0] == "oldest":
		return place, false, nil
	}
	place, err = events.ParseCursor(after[0])
	return place, false, err
}

// answer answers a request whose stream has not begun.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, err error) {
	switch {
	case goneOf(err) != nil:
		goneOf(err).Answer(w)
	case errors.Is(err, outbox.ErrInvalid): // of no tenant, for example
		h.feed.Log().Box().Logger().WarnContext(ctx, "the authoriser of a stream gave a filter that cannot be used", "error", err)
		eventstream.Forbidden.Answer(w)
	default:
		if ctx.Err() == nil {
			h.feed.Log().Box().Logger().WarnContext(ctx, "cannot read the stream for a client", "error", err)
		}
		eventstream.Unavailable(w)
	}
}
