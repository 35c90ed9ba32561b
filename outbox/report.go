package outbox

import (
	"context"
	"log/slog"
)

// reportDead tells operators of a message that died, once it is recorded.
func (b *Box) reportDead(ctx context.Context, burial Burial) {
	b.log.LogAttrs(ctx, slog.LevelWarn, "dead letter",
		slog.Any("message", burial.Message), slog.String("cause", string(burial.Cause)), slog.String("reason", burial.Reason))
	b.observer.Dead(ctx, burial)
}
