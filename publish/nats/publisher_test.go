package natspub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish/nats"
)

// The payload arrives byte for byte, under the headers that were promised, whatever the names and values of the metadata are.
func TestPublishToStream(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, options(t.TempDir())))
	orders := stream(t, js, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, AllowRollup: true})
	p := publisher(t, js, natspub.Config{})
	m := message("orders.paid", "order/17")
	m.Tenant, m.Epoch, m.Attempt = "acme", 4, 2
	m.Payload = []byte("\x00\xff\r\n{} ")
	m.Metadata = map[string]string{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "a=1%202,b=3", "Nats-Rollup": "all", "nats-msg-id": "forged",
		"a b:ü": "ü", "lines": " 100%\r\nNats-Rollup: all\t", "Fencepost-Id": "forged",
	}
	if result, _, err := perform(t.Context(), p, m); err != nil || result != "stream=ORDERS sequence=1" {
		t.Errorf("%q, %v", result, err)
	}
	empty := message("orders.paid", "empty")
	empty.Payload = []byte{}
	if _, _, err := perform(t.Context(), p, empty); err != nil {
		t.Error(err)
	}
	all := stored(t, orders)
	if len(all) != 2 || !bytes.Equal(all[0].Data, m.Payload) || len(all[1].Data) != 0 {
		t.Fatalf("stored %+v", all)
	}
	want := nats.Header{
		"Nats-Msg-Id": {"acme/shop/order%2F17"}, "fencepost-id": {"acme/shop/order%2F17"}, "fencepost-key": {"order/17"}, "fencepost-tenant": {"acme"}, "fencepost-kind": {"order.paid"},
		"fencepost-epoch": {"4"}, "fencepost-attempt": {"2"}, "traceparent": {m.Metadata["traceparent"]}, "baggage": {m.Metadata["baggage"]},
		"%4Eats-Rollup": {"all"}, "%6Eats-msg-id": {"forged"}, "a%20b%3A%C3%BC": {"ü"}, "lines": {"%20100%25%0D%0ANats-Rollup: all%09"}, "%46encepost-Id": {"forged"},
	}
	if !reflect.DeepEqual(all[0].Header, want) {
		t.Errorf("header %q, want\n%q", all[0].Header, want)
	}
}

func TestHundredRedeliveries(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, options(t.TempDir())))
	orders := stream(t, js, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	p := publisher(t, js, natspub.Config{Subject: "orders.paid"})
	m := message("elsewhere", "17")
	for m.Attempt = 1; m.Attempt <= 100; m.Attempt++ {
		m.Epoch++
		result, _, err := perform(t.Context(), p, m)
		want := "stream=ORDERS sequence=1"
		if m.Attempt > 1 {
			want += " duplicate=true"
		}
		if err != nil || result != want {
			t.Fatalf("delivery %d: %q, %v", m.Attempt, result, err)
		}
	}
	other := m
	other.Tenant = "acme"
	if result, _, err := perform(t.Context(), p, other); err != nil || result != "stream=ORDERS sequence=2" {
		t.Errorf("another tenant's: %q, %v", result, err)
	}
	if all := stored(t, orders); len(all) != 2 || all[0].Header.Get("fencepost-attempt") != "1" {
		t.Errorf("stored %d, the first of attempt %s", len(all), all[0].Header.Get("fencepost-attempt"))
	}
}

func TestOutcomesOfStreams(t *testing.T) {
	t.Parallel()
	config := options(t.TempDir())
	config.MaxPayload = 8 << 10
	config.Users = []*server.User{
		{Username: "owner", Password: "owner"},
		{Username: "reader", Password: "reader", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"orders.>"}}}},
	}
	s := start(t, config)
	js := connect(t, s, nats.UserInfo("owner", "owner"))
	stream(t, js, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, MaxMsgSize: 4 << 10})
	stream(t, js, jetstream.StreamConfig{Name: "FULL", Subjects: []string{"full"}, MaxMsgs: 1, Discard: jetstream.DiscardNew})
	unanswered := stream(t, js, jetstream.StreamConfig{Name: "MUTE", Subjects: []string{"mute"}, NoAck: true})
	if _, err := js.Publish(t.Context(), "full", nil); err != nil {
		t.Fatal(err)
	}
	reader, closed, draining := connect(t, s, nats.UserInfo("reader", "reader")), connect(t, s, nats.UserInfo("owner", "owner")), connect(t, s, nats.UserInfo("owner", "owner"))
	closed.Conn().Close()
	if err := draining.Conn().Drain(); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	moot := outbox.Moot(errors.New("withdrawn"))
	soon := 100 * time.Millisecond
	for row, test := range map[string]struct {
		js      jetstream.JetStream
		config  natspub.Config
		target  string
		payload int
		ctx     context.Context
		want    outbox.Verdict
		reason  string
	}{
		"stored":                {target: "orders.paid", want: outbox.VerdictDelivered},
		"no stream":             {target: "invoices.paid", want: outbox.VerdictUnavailable, reason: "no response from stream"},
		"no stream, failed":     {target: "invoices.paid", config: natspub.Config{NoStream: outbox.VerdictFailed}, want: outbox.VerdictFailed},
		"no stream, permanent":  {target: "invoices.paid", config: natspub.Config{NoStream: outbox.VerdictPermanent}, want: outbox.VerdictPermanent},
		"too big for a stream":  {target: "orders.paid", payload: 5 << 10, want: outbox.VerdictPermanent, reason: "message size exceeds maximum"},
		"too big for a server":  {target: "orders.paid", payload: 9 << 10, want: outbox.VerdictPermanent, reason: "maximum payload exceeded"},
		"full":                  {target: "full", want: outbox.VerdictFailed, reason: "maximum messages exceeded"},
		"wildcard":              {target: "orders.*", want: outbox.VerdictPermanent, reason: "Target has a wildcard"},
		"empty token":           {target: "orders..paid", want: outbox.VerdictPermanent, reason: "Target is blank"},
		"white space":           {config: natspub.Config{SubjectOf: func(outbox.Message) (string, error) { return "a b", nil }}, want: outbox.VerdictPermanent, reason: "SubjectOf has white space"},
		"control":               {target: "orders\r\nPUB x 0", want: outbox.VerdictPermanent, reason: "control"},
		"no subject":            {config: natspub.Config{SubjectOf: func(outbox.Message) (string, error) { return "", moot }}, want: outbox.VerdictMoot, reason: "withdrawn"},
		"no right":              {js: reader, target: "orders.paid", config: natspub.Config{Timeout: 5 * soon}, want: outbox.VerdictFailed, reason: `Violation for Publish to "orders.paid"`},
		"no answer":             {target: "mute", config: natspub.Config{Timeout: soon}, want: outbox.VerdictFailed, reason: "deadline exceeded"},
		"no answer, unknown":    {target: "mute", config: natspub.Config{Timeout: soon, UnknownOnTimeout: true}, want: outbox.VerdictUnknown},
		"connection closed":     {js: closed, target: "orders.paid", want: outbox.VerdictUnavailable, reason: "CLOSED"},
		"connection draining":   {js: draining, target: "orders.paid", want: outbox.VerdictUnavailable},
		"ended before":          {ctx: cancelled, target: "orders.paid", config: natspub.Config{UnknownOnTimeout: true}, want: outbox.VerdictFailed, reason: "canceled"},
		"ended before, unknown": {ctx: cancelled, target: "invoices.paid", want: outbox.VerdictFailed, reason: "canceled"},
	} {
		if test.js == nil {
			test.js = js
		}
		if test.ctx == nil {
			test.ctx = t.Context()
		}
		m := message(test.target, row)
		m.Payload = make([]byte, test.payload)
		_, verdict, err := perform(test.ctx, publisher(t, test.js, test.config), m)
		if verdict != test.want || !strings.Contains(fmt.Sprint(err), test.reason) {
			t.Errorf("%s: %v, %v", row, verdict, err)
		}
	}
	if all := stored(t, unanswered); len(all) != 2 {
		t.Errorf("stored %d without an answer", len(all))
	}
	if js.Conn().Status() != nats.CONNECTED || reader.Conn().Status() != nats.CONNECTED {
		t.Error("a publisher closed a connection")
	}
}

// A context that ends while the stream is silent ends the attempt then.
func TestPublishEndsWithItsContext(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, options(t.TempDir())))
	stream(t, js, jetstream.StreamConfig{Name: "MUTE", Subjects: []string{"mute"}, NoAck: true})
	arrived, err := js.Conn().SubscribeSync("mute")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = arrived.NextMsg(patience)
		cancel()
	}()
	_, verdict, err := perform(ctx, publisher(t, js, natspub.Config{Timeout: time.Hour, UnknownOnTimeout: true}), message("mute", "17"))
	if verdict != outbox.VerdictFailed || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", verdict, err)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, options(t.TempDir())))
	of := func(outbox.Message) (string, error) { return "orders", nil }
	for row, test := range map[string]struct {
		config natspub.Config
		fields []string
	}{
		"all":      {natspub.Config{Subject: " ", SubjectOf: of, Timeout: -1, NoStream: outbox.VerdictUnknown}, []string{"Subject", "SubjectOf", "Timeout", "NoStream"}},
		"wildcard": {natspub.Config{Subject: "orders.>"}, []string{"Subject"}},
		"short":    {natspub.Config{Timeout: time.Millisecond}, []string{"Timeout"}},
		"long":     {natspub.Config{Timeout: 2 * time.Hour}, []string{"Timeout"}},
	} {
		_, err := natspub.New(js, test.config)
		var invalid *outbox.InvalidError
		if !errors.Is(err, outbox.ErrInvalid) || !errors.As(err, &invalid) {
			t.Errorf("%s: %v", row, err)
		}
		for _, field := range test.fields {
			if !strings.Contains(fmt.Sprint(err), field+" ") {
				t.Errorf("%s: %v, want a problem of %s", row, err, field)
			}
		}
	}
	if _, err := natspub.New(nil, natspub.Config{}); !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("no connection: %v", err)
	}
}
