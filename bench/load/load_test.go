package load

import (
	"context"
	"errors"
	"testing"
)

func TestCountdown(t *testing.T) {
	c := NewCountdown(10)
	c.Tick(4)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := c.Wait(ctx); !errors.Is(err, stopped) {
		t.Errorf("with six left it ends with %v", err)
	}
	c.Tick(7) // more than there were
	c.Tick(1)
	if err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPeak(t *testing.T) {
	if got, err := peak("VmPeak:\t 9999 kB\nVmHWM:\t   2048 kB\nVmRSS:\t 1 kB\n"); got != 2<<20 || err != nil {
		t.Errorf("%d bytes, %v", got, err)
	}
	if _, err := peak("VmRSS:\t 1 kB\n"); err == nil {
		t.Error("a status without a peak is read as one")
	}
}
