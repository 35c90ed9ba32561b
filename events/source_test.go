package events_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

type placed struct{ Cents int }

// Shows: S1.5 S1.6
func TestSource(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		decode := func(e events.Event) (p placed, err error) { return p, json.Unmarshal(e.Payload, &p) }
		l := r.log(events.Config{Subscriptions: []events.Subscription{toLedger, toMail}, Decoders: []events.Decoder{events.DecoderOf("order.placed", decode)}})
		given := events.Event{
			ID: "e-1", Tenant: "acme", Stream: "order-7", Type: "order.placed", Payload: []byte(`{"Cents": 700}`), Metadata: map[string]string{"by": "ann"},
		}
		receipt := r.append(l, given)[0]
		m := r.leased("wallets", "ledger", "charge")[0]
		p, e, err := events.SourceAs[placed](r.Context(), l, m)
		if err != nil || p.Cents != 700 {
			r.Errorf("%+v, %v", p, err)
		}
		if e.ID != "e-1" || e.Tenant != "acme" || e.Stream != "order-7" || e.Type != "order.placed" || string(e.Payload) != string(given.Payload) ||
			e.Metadata["by"] != "ann" || e.Position != receipt.Position || time.Since(e.RecordedAt).Abs() > time.Hour || e.RecordedAt.Location() != time.UTC {
			r.Errorf("%+v", e)
		}
		for name, change := range map[string]func(*outbox.Message){
			"position": func(m *outbox.Message) { m.SourcePosition++ }, "id": func(m *outbox.Message) { m.SourceEventID = "other" },
			"tenant": func(m *outbox.Message) { m.Tenant = "" }, "none": func(m *outbox.Message) { m.SourcePosition = 0 },
		} {
			other := m
			change(&other)
			if _, err := l.Source(r.Context(), other); !errors.Is(err, events.ErrSourceNotFound) {
				r.Errorf("another %s: %v", name, err)
			}
		}
	})
}

func TestDecoders(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	own := errors.New("own")
	l := r.log(events.Config{Decoders: []events.Decoder{events.DecoderOf("bad", func(events.Event) (placed, error) { return placed{}, own })}})
	if _, err := events.Decode[placed](l, events.Event{Type: "bad"}); !errors.Is(err, own) {
		t.Errorf("the decoder's error: %v", err)
	}
	if _, err := events.Decode[placed](l, events.Event{Type: "other"}); !errors.Is(err, events.ErrNoDecoder) {
		t.Errorf("no decoder: %v", err)
	}
	if _, err := events.Decode[int](l, events.Event{Type: "bad"}); !errors.Is(err, events.ErrNoDecoder) {
		t.Errorf("another result: %v", err)
	}
}
