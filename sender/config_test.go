package sender

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

func newBox(t *testing.T) (*outbox.Box, *outbox.Consumer) {
	t.Helper()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := box.Consumer("wallets", "ledger", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return box, consumer
}

func TestZeroConfigTakesTheDefaults(t *testing.T) {
	t.Parallel()
	box, consumer := newBox(t)
	s, err := New(box, consumer, Config{Handlers: doing(succeed)})
	if err != nil {
		t.Fatal(err)
	}
	c := s.config
	if c.Slots != 16 || c.Batch != 100 || c.Lease != 30*time.Second || c.Poll != 500*time.Millisecond || c.Drain != 10*time.Second ||
		c.LongestHold != 12*time.Hour || c.Name == "" || c.Handlers["charge"].Lease != c.Lease {
		t.Errorf("%+v", c)
	}
}

func TestDrainFollowsAShortLease(t *testing.T) {
	t.Parallel()
	box, consumer := newBox(t)
	s, err := New(box, consumer, Config{Handlers: Handlers{"charge": {Do: succeed, Lease: 2 * time.Second}}})
	if err != nil || s.config.Drain != 2*time.Second {
		t.Errorf("%v, %v", s.config.Drain, err)
	}
}

// Every number and every duration at zero, negative, the least and the greatest value: a documented default, or a refusal that names it.
func TestC23SettingsAreRefusedByName(t *testing.T) {
	t.Parallel()
	with := func(change func(*Handler)) Config {
		h := Handler{Do: succeed}
		change(&h)
		return Config{Handlers: Handlers{"charge": h}}
	}
	for _, test := range []struct {
		config Config
		want   string // "" is accepted
	}{
		{Config{Slots: -1}, "Slots is -1, not between 1 and 10000"},
		{Config{Slots: 1}, ""},
		{Config{Slots: 1_000_000}, "Slots is 1000000, not between 1 and 10000"},
		{Config{Batch: -1}, "Batch is -1, not between 1 and 1000"},
		{Config{Batch: math.MaxInt}, "Batch is 9223372036854775807, not between 1 and 1000"},
		{Config{Lease: -1}, "Lease is -1ns, not between 1s and 1h0m0s"},
		{Config{Lease: 1}, "Lease is 1ns, not between 1s and 1h0m0s"},
		{Config{Lease: math.MaxInt64}, "Lease is 2562047h47m16.854775807s, not between 1s and 1h0m0s"},
		{Config{Lease: time.Hour}, ""},
		{Config{Lease: time.Second}, ""},
		{Config{LongestHold: -1}, "LongestHold is -1ns"},
		{Config{LongestHold: 1}, "Lease of 30s must not exceed the LongestHold of 1ns"},
		{Config{LongestHold: math.MaxInt64}, "LongestHold is 2562047h47m16.854775807s, not between 0s and 168h0m0s"},
		{Config{Poll: -1}, "Poll is -1ns, not between 100ms and 1h0m0s"},
		{Config{Poll: 1}, "Poll is 1ns, not between 100ms and 1h0m0s"},
		{Config{Poll: math.MaxInt64}, "Poll is 2562047h47m16.854775807s"},
		{Config{Drain: -1}, "Drain is negative: -1ns"},
		{Config{Drain: 1}, ""},
		{Config{Drain: time.Minute}, "Drain of 1m0s must not exceed the shortest Lease of 30s"},
		{Config{Grace: -1}, "Grace is negative: -1ns"},
		{Config{Grace: 10 * time.Second}, ""},
		{Config{Grace: 10*time.Second + 1}, "Grace of 10.000000001s must not exceed a third of the shortest Lease of 30s"},
		{Config{Name: strings.Repeat("x", 129)}, "Name is blank, longer than 128 bytes, or no text"},
		{Config{Name: " "}, "Name is blank"},
		{Config{Name: "a\x00b"}, "Name is blank"},
		{Config{Scope: outbox.Tenants()}, "Scope names no tenant"},
		{Config{Handlers: Handlers{" ": {Do: succeed}}}, "Kinds is blank"},
		{Config{Handlers: Handlers{"*": {Do: succeed}}}, "Kinds is the wildcard"},
		{Config{Handlers: Handlers{"charge": {}}}, `Handlers["charge"].Do is nil, and so is DoResult`},
		{with(func(h *Handler) { h.Lease = 1 }), `Handlers["charge"].Lease is 1ns, not between 1s and 1h0m0s`},
		{with(func(h *Handler) { h.Lease = -1 }), `Handlers["charge"].Lease is -1ns`},
		{with(func(h *Handler) { h.Timeout = -1 }), `Handlers["charge"].Timeout is negative`},
		{with(func(h *Handler) { h.Timeout = 1 }), ""},
		{with(func(h *Handler) { h.Timeout = 13 * time.Hour }), `Handlers["charge"].Timeout of 13h0m0s must not exceed the LongestHold of 12h0m0s`},
		{with(func(h *Handler) { h.UnknownOnTimeout = true }), `Handlers["charge"].UnknownOnTimeout needs a Timeout`},
		{with(func(h *Handler) { h.MaxAge = -1 }), `Handlers["charge"].MaxAge is negative: -1ns`},
		{with(func(h *Handler) { h.MaxAge = math.MaxInt64 - 1 }), "MaxAge is longer than 100 years"},
		{with(func(h *Handler) { h.MaxAge = 1 }), ""},
	} {
		box, consumer := newBox(t)
		switch _, err := New(box, consumer, test.config); {
		case test.want == "" && err != nil:
			t.Errorf("refused: %v", err)
		case test.want != "" && (!errors.Is(err, outbox.ErrInvalid) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

func TestNewReportsEveryProblem(t *testing.T) {
	t.Parallel()
	box, _ := newBox(t)
	_, err := New(box, nil, Config{Slots: -1, Poll: -1, Scope: outbox.Tenants(), Handlers: Handlers{"charge": {}}})
	for _, want := range []string{"Slots", "Poll", "Scope", `Handlers["charge"].Do`, "Consumer is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if _, err := New(nil, nil, Config{}); !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("a nil box: %v", err)
	}
}
