package sse

import (
	"errors"
	"net/http"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/eventstream"
)

const beginAnew = "Begin anew with ?after=oldest, or without a cursor at the end of now, and reconcile what was missed."

var (
	invalid = eventstream.Problem{Status: http.StatusBadRequest, Code: "cursor_invalid", Action: "Send an id as it was received, ?after=oldest, or no cursor at all."}
	unknown = eventstream.Problem{
		Status: http.StatusGone, Code: "cursor_unknown",
		Message: "The stream has no such place: it is another one, or was restored from an older copy.", Action: beginAnew,
	}
	expired = eventstream.Problem{Status: http.StatusGone, Code: "cursor_expired", Message: "Events that follow the cursor were removed.", Action: beginAnew}
)

// goneOf is the problem of a cursor that is of no use any more; nil for any other error.
func goneOf(err error) *eventstream.Problem {
	switch {
	case errors.Is(err, events.ErrCursorUnknown):
		return &unknown
	case errors.Is(err, events.ErrCursorExpired):
		return &expired
	}
	return nil
}
