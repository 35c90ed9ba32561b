package sender

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/outbox"
)

// JSON adapts a function that takes the payload decoded as a T. A payload that does not decode is a permanent failure: the message is dead at
// once, with a reason that does not quote the payload.
func JSON[T any](do func(context.Context, outbox.Message, T) error) func(context.Context, outbox.Message) error {
	return func(ctx context.Context, m outbox.Message) error {
		var payload T
		if err := json.Unmarshal(m.Payload, &payload); err != nil {
			return outbox.Permanent(fmt.Errorf("payload is no %T: %s", payload, content.Unquoted(err)))
		}
		return do(ctx, m, payload)
	}
}
