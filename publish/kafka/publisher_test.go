package kafkapub_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish/kafka"
)

// The payload arrives byte for byte, under its key and the headers that were promised.
func TestPublishToTopic(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "orders.paid"))
	p := publisher(t, client(t, c.ListenAddrs()), kafkapub.Config{})
	m := message("orders.paid", "order/17")
	m.Tenant, m.Epoch, m.Attempt = "acme", 4, 2
	m.Payload = []byte("\x00\xff\r\n{} ")
	m.Metadata = map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a b:ü": "ü\r\n", "Fencepost-Id": "forged"}
	if result, _, err := perform(t.Context(), p, m); err != nil || result != "topic=orders.paid partition=0 offset=0" {
		t.Errorf("%q, %v", result, err)
	}
	ordered := message("orders.paid", "order/18")
	ordered.OrderKey, ordered.Payload = "customer/3", []byte{}
	if result, _, err := perform(t.Context(), p, ordered); err != nil || result != "topic=orders.paid partition=0 offset=1" {
		t.Errorf("%q, %v", result, err)
	}
	all := stored(t, c, "orders.paid")
	if len(all) != 2 || !bytes.Equal(all[0].Value, m.Payload) || len(all[1].Value) != 0 || all[1].Value == nil || string(all[0].Key) != "order/17" || string(all[1].Key) != "customer/3" {
		t.Fatalf("stored %+v", all)
	}
	got := map[string]string{}
	for _, h := range all[0].Headers {
		got[h.Key] += string(h.Value)
	}
	want := map[string]string{
		"fencepost-id": "acme/shop/order%2F17", "fencepost-key": "order/17", "fencepost-tenant": "acme", "fencepost-kind": "order.paid", "fencepost-epoch": "4", "fencepost-attempt": "2",
		"traceparent": m.Metadata["traceparent"], "a b:ü": "ü\r\n", "%46encepost-Id": "forged",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("headers %q, want\n%q", got, want)
	}
}

func TestOutcomesOfTopics(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "orders", "refused", "invalid", "broken"), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "4096"}))
	gone := cluster(t, kfake.SeedTopics(1, "orders"))
	nowhere := gone.ListenAddrs()
	gone.Close()
	for topic, err := range map[string]*kerr.Error{"refused": kerr.TopicAuthorizationFailed, "invalid": kerr.InvalidRecord, "broken": kerr.UnknownServerError} {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: err, Count: -1})
	}
	own, closed := client(t, c.ListenAddrs()), client(t, c.ListenAddrs())
	closed.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	moot := outbox.Moot(errors.New("withdrawn"))
	for row, test := range map[string]struct {
		client  *kgo.Client
		config  kafkapub.Config
		target  string
		payload int
		ctx     context.Context
		want    outbox.Verdict
		reason  string
	}{
		"stored":                {target: "orders", want: outbox.VerdictDelivered},
		"no topic":              {target: "invoices", want: outbox.VerdictUnavailable, reason: "UNKNOWN_TOPIC"},
		"no topic, failed":      {target: "invoices", config: kafkapub.Config{NoTopic: outbox.VerdictFailed}, want: outbox.VerdictFailed},
		"no topic, permanent":   {target: "invoices", config: kafkapub.Config{NoTopic: outbox.VerdictPermanent}, want: outbox.VerdictPermanent},
		"too big for a topic":   {target: "orders", payload: 5 << 10, want: outbox.VerdictPermanent, reason: "MESSAGE_TOO_LARGE"},
		"too big for a client":  {target: "orders", payload: 2 << 20, want: outbox.VerdictPermanent, reason: "MESSAGE_TOO_LARGE"},
		"refused":               {target: "refused", want: outbox.VerdictFailed, reason: "TOPIC_AUTHORIZATION_FAILED"},
		"invalid":               {target: "invalid", want: outbox.VerdictPermanent, reason: "INVALID_RECORD"},
		"broken":                {target: "broken", want: outbox.VerdictFailed, reason: "UNKNOWN_SERVER_ERROR"},
		"blank topic":           {target: " ", want: outbox.VerdictPermanent, reason: "Target is blank"},
		"bad topic":             {target: "orders/paid", want: outbox.VerdictPermanent, reason: "Target has a character"},
		"dots":                  {target: "..", want: outbox.VerdictPermanent, reason: "Target is . or .."},
		"long topic":            {config: kafkapub.Config{TopicOf: func(outbox.Message) (string, error) { return strings.Repeat("x", 250), nil }}, want: outbox.VerdictPermanent, reason: "TopicOf has 250 bytes"},
		"no topic to publish":   {config: kafkapub.Config{TopicOf: func(outbox.Message) (string, error) { return "", moot }}, want: outbox.VerdictMoot, reason: "withdrawn"},
		"no broker":             {client: client(t, nowhere), target: "orders", config: kafkapub.Config{Timeout: 300 * time.Millisecond, UnknownOnTimeout: true}, want: outbox.VerdictUnavailable},
		"client closed":         {client: closed, target: "orders", want: outbox.VerdictFailed, reason: "client closed"},
		"ended before":          {ctx: cancelled, target: "orders", config: kafkapub.Config{UnknownOnTimeout: true}, want: outbox.VerdictFailed, reason: "canceled"},
		"ended before, unknown": {ctx: cancelled, target: "invoices", want: outbox.VerdictFailed, reason: "canceled"},
	} {
		if test.client == nil {
			test.client = own
		}
		if test.ctx == nil {
			test.ctx = t.Context()
		}
		m := message(test.target, row)
		m.Payload = make([]byte, test.payload)
		_, _ = rand.Read(m.Payload) // nothing that compresses
		_, verdict, err := perform(test.ctx, publisher(t, test.client, test.config), m)
		if verdict != test.want || !strings.Contains(fmt.Sprint(err), test.reason) {
			t.Errorf("%s: %v, %v", row, verdict, err)
		}
	}
	if all := stored(t, c, "orders"); len(all) != 1 {
		t.Errorf("stored %d", len(all))
	}
	if err := own.Ping(t.Context()); err != nil {
		t.Errorf("a publisher closed a client: %v", err)
	}
}

// A broker that is silent leaves the record with the client, and the next attempt of the message waits for that record.
func TestUnansweredRecord(t *testing.T) {
	t.Parallel()
	for row, test := range map[string]struct {
		unknown bool
		end     func(cancel func())
		want    outbox.Verdict
	}{
		"timeout":          {want: outbox.VerdictFailed},
		"timeout, unknown": {unknown: true, want: outbox.VerdictUnknown},
		"ended":            {unknown: true, end: func(cancel func()) { cancel() }, want: outbox.VerdictFailed},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, kfake.SeedTopics(1, "orders"))
			sent, answer := make(chan struct{}), make(chan struct{})
			first := sync.OnceFunc(func() { close(sent) })
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				first()
				c.SleepControl(func() { <-answer })
				return nil, nil, false
			})
			config := kafkapub.Config{UnknownOnTimeout: test.unknown, Timeout: time.Hour}
			if test.end == nil {
				config.Timeout = 300 * time.Millisecond
			}
			p := publisher(t, client(t, c.ListenAddrs()), config)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-sent
				if test.end != nil {
					test.end(cancel)
				}
			}()
			m := message("orders", "17")
			if _, verdict, err := perform(ctx, p, m); verdict != test.want {
				t.Errorf("%v, %v", verdict, err)
			}
			close(answer)
			m.Attempt, m.Epoch = 2, 2
			if result, _, err := perform(t.Context(), p, m); err != nil || result != "topic=orders partition=0 offset=0" {
				t.Errorf("%q, %v", result, err)
			}
			if all := stored(t, c, "orders"); len(all) != 1 || headerOf(all[0], "fencepost-attempt") != "1" {
				t.Errorf("stored %+v", all)
			}
		})
	}
}

// During an outage no attempt leaves a record behind but those it cut off.
func TestOutage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cluster(t, kfake.SeedTopics(1, "orders"), kfake.DataDir(dir))
	seeds := c.ListenAddrs()
	p := publisher(t, client(t, seeds), kafkapub.Config{Timeout: 300 * time.Millisecond})
	first, second, third := message("orders", "1"), message("orders", "2"), message("orders", "3")
	if _, _, err := perform(t.Context(), p, first); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, verdict, err := perform(t.Context(), p, second); verdict != outbox.VerdictFailed && verdict != outbox.VerdictUnavailable {
		t.Errorf("cut off: %v, %v", verdict, err)
	}
	for range 20 {
		if _, verdict, err := perform(t.Context(), p, third); verdict != outbox.VerdictUnavailable {
			t.Errorf("down: %v, %v", verdict, err)
		}
	}
	c = cluster(t, kfake.DataDir(dir), kfake.Ports(portOf(t, seeds[0])))
	for _, m := range []outbox.Message{second, third} {
		until(t, func() bool {
			_, _, err := perform(t.Context(), p, m)
			return err == nil
		})
	}
	var keys []string
	for _, record := range stored(t, c, "orders") {
		keys = append(keys, string(record.Key))
	}
	if got := strings.Join(keys, " "); got != "1 2 3" {
		t.Errorf("stored %s", got)
	}
}

// What an idempotent producer does not give: another client that performs a message again, as after a crash, stores it again, under the same id.
func TestAnotherClientStoresAgain(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	for range 2 {
		p := publisher(t, client(t, c.ListenAddrs()), kafkapub.Config{Topic: "orders"})
		if _, _, err := perform(t.Context(), p, message("elsewhere", "17")); err != nil {
			t.Error(err)
		}
	}
	all := stored(t, c, "orders")
	if len(all) != 2 || headerOf(all[0], "fencepost-id") != "/shop/17" || headerOf(all[1], "fencepost-id") != "/shop/17" {
		t.Errorf("stored %+v", all)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	of := func(outbox.Message) (string, error) { return "orders", nil }
	for row, test := range map[string]struct {
		options []kgo.Opt
		config  kafkapub.Config
		fields  []string
	}{
		"all":           {nil, kafkapub.Config{Topic: " ", TopicOf: of, Timeout: -1, NoTopic: outbox.VerdictUnknown}, []string{"Topic is", "TopicOf is", "Timeout is", "NoTopic is"}},
		"topic":         {nil, kafkapub.Config{Topic: "a/b"}, []string{"Topic has"}},
		"long":          {nil, kafkapub.Config{Timeout: 2 * time.Hour}, []string{"Timeout is"}},
		"acks":          {[]kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())}, kafkapub.Config{}, []string{"client is made with DisableIdempotentWrite", "RequiredAcks"}},
		"cancels":       {[]kgo.Opt{kgo.AllowIdempotentProduceCancellation()}, kafkapub.Config{}, []string{"AllowIdempotentProduceCancellation"}},
		"manual":        {[]kgo.Opt{kgo.ManualFlushing()}, kafkapub.Config{}, []string{"ManualFlushing"}},
		"always":        {[]kgo.Opt{kgo.DefaultProduceTopicAlways(), kgo.DefaultProduceTopic("x")}, kafkapub.Config{}, []string{"DefaultProduceTopicAlways"}},
		"transactional": {[]kgo.Opt{kgo.TransactionalID("x")}, kafkapub.Config{}, []string{"TransactionalID"}},
	} {
		_, err := kafkapub.New(client(t, []string{"127.0.0.1:1"}, test.options...), test.config)
		var invalid *outbox.InvalidError
		if !errors.Is(err, outbox.ErrInvalid) || !errors.As(err, &invalid) {
			t.Errorf("%s: %v", row, err)
		}
		for _, field := range test.fields {
			if !strings.Contains(fmt.Sprint(err), field) {
				t.Errorf("%s: %v, want a problem of %s", row, err, field)
			}
		}
	}
	if _, err := kafkapub.New(nil, kafkapub.Config{}); !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("no client: %v", err)
	}
}

func headerOf(record *kgo.Record, name string) string {
	for _, h := range record.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func until(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited too long")
		}
	}
}

func portOf(t testing.TB, address string) (port int) {
	t.Helper()
	if _, err := fmt.Sscanf(address, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	return port
}
