package sse

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/fencepost-go/fencepost/events"
)

// A problem is what a client is told in place of events.
type problem struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Action  string `json:"action"`
}

const beginAnew = "Begin anew with ?after=oldest, or without a cursor at the end of now, and reconcile what was missed."

var (
	notAllowed = problem{http.StatusMethodNotAllowed, "method_not_allowed", "The stream is read with GET.", "Use GET."}
	// The authoriser's own words are not for the client.
	unauthenticated = problem{http.StatusUnauthorized, "unauthenticated", "The request does not say who asks.", "Authenticate, and ask again."}
	forbidden       = problem{http.StatusForbidden, "forbidden", "This stream is not for who asks.", "Ask whoever runs this service."}
	invalid         = problem{http.StatusBadRequest, "cursor_invalid", "", "Send an id as it was received, ?after=oldest, or no cursor at all."}
	unknown         = problem{http.StatusGone, "cursor_unknown", "The stream has no such place: it is another one, or was restored from an older copy.", beginAnew}
	expired         = problem{http.StatusGone, "cursor_expired", "Events that follow the cursor were removed.", beginAnew}
	unavailable     = problem{http.StatusServiceUnavailable, "unavailable", "The stream cannot be read at the moment.", "Try again."}
	unsupported     = problem{http.StatusInternalServerError, "unsupported", "This server cannot stream.", "Ask whoever runs this service."}
)

// goneOf is the problem of a cursor that is of no use any more; nil for any other error.
func goneOf(err error) *problem {
	switch {
	case errors.Is(err, events.ErrCursorUnknown):
		return &unknown
	case errors.Is(err, events.ErrCursorExpired):
		return &expired
	}
	return nil
}

func (p problem) with(err error) problem {
	p.Message = err.Error()
	return p
}

func (p problem) json() []byte {
	text, _ := json.Marshal(p) // of strings, which cannot fail
	return text
}

func (p problem) answer(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.status)
	w.Write(append(p.json(), '\n'))
}
