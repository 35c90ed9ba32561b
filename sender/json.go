package sender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencepost-go/fencepost/outbox"
)

// JSON adapts a function that takes the payload decoded as a T. A payload that does not decode is a permanent failure: the message is dead at
// once, with a reason that does not quote the payload.
func JSON[T any](do func(context.Context, outbox.Message, T) error) func(context.Context, outbox.Message) error {
	return func(ctx context.Context, m outbox.Message) error {
		var payload T
		if err := json.Unmarshal(m.Payload, &payload); err != nil {
			return outbox.Permanent(fmt.Errorf("payload is no %T: %s", payload, unquoted(err)))
		}
		return do(ctx, m, payload)
	}
}

// unquoted says where a payload is wrong without repeating any of it, as the errors of encoding/json do.
func unquoted(err error) string {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &mismatch):
		return fmt.Sprintf("field %q takes a %s, at byte %d", mismatch.Field, mismatch.Type, mismatch.Offset)
	default:
		return "refused by its type"
	}
}
