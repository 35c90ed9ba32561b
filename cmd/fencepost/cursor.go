package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A place in a list is written as the id of a message, and where the list goes by time of settlement, that time before it.

func formatCursor(state outbox.State, at outbox.Cursor) string {
	id := strconv.FormatInt(at.ID, 10)
	if !byTime(state) {
		return id
	}
	return at.At.Format(time.RFC3339Nano) + "/" + id
}

func parseCursor(state outbox.State, text string) (outbox.Cursor, error) {
	at, id, timed := strings.Cut(text, "/")
	if !timed {
		at, id = "", text
	}
	var cursor outbox.Cursor
	var err error
	if cursor.ID, err = strconv.ParseInt(id, 10, 64); err != nil || cursor.ID <= 0 || timed != byTime(state) {
		return cursor, errCursor
	}
	if timed {
		if cursor.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return cursor, errCursor
		}
	}
	return cursor, nil
}

var errCursor = usagef("--after is no place in this list; take it from the page before, with the same --state")

// byTime says how a list is ordered: see outbox.Page.
func byTime(state outbox.State) bool {
	return state == outbox.StateDead || state == outbox.StateCancelled || state == outbox.StateExpired
}
