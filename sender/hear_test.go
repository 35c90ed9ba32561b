package sender

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A listener that cannot connect says why, once until it has listened again, and goes on trying.
func TestListenerThatFailsSaysSo(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var refused atomic.Bool
		refused.Store(true)
		b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation == "Listen" && refused.Load() {
				return errors.New("no such host")
			}
			return nil
		}})
		stop := b.run(b.slowly(Config{Listen: true}))
		logged := func(want int) {
			b.Helper()
			if lines := b.log.lines("no such host"); len(lines) != want {
				b.Errorf("logged %v, want %d lines", lines, want)
			}
		}
		wait(time.Hour)
		logged(1)
		refused.Store(false)
		wait(time.Hour)
		b.unheard("a")
		_ = b.store.Wake(b.Context())
		wait(time.Second)
		if len(b.outcomes()) != 1 {
			b.Error("does not listen again")
		}
		refused.Store(true)
		b.store.Disconnect()
		wait(time.Hour)
		logged(2)
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}
