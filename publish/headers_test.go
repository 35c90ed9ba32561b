package publish_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish"
)

func TestMessageID(t *testing.T) {
	t.Parallel()
	seen := map[string]outbox.Message{}
	for _, m := range []outbox.Message{
		{Consumer: "shop", Key: "order/17"}, {Consumer: "shop/order", Key: "17"}, {Tenant: "shop", Consumer: "order", Key: "17"}, {Tenant: "/shop", Consumer: "order", Key: "17"},
		{Consumer: "shop", Key: "order%2F17"}, {Consumer: "shop", Key: "order\n17"}, {Consumer: "shop", Key: "order 17"}, {Consumer: "shop", Key: "bücher"},
		{Tenant: strings.Repeat("\xff", 128), Consumer: strings.Repeat("\xff", 128), Key: strings.Repeat("\xff", 255)},
	} {
		id := publish.MessageID(m)
		if other, taken := seen[id]; taken {
			t.Errorf("%q of %v and %v", id, m, other)
		}
		seen[id] = m
		if strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) || len(id) > 1535 {
			t.Errorf("%q of %d bytes", id, len(id))
		}
		later := m
		later.ID, later.Epoch, later.Attempt, later.Replays = 5, 7, 3, 1
		if publish.MessageID(later) != id {
			t.Errorf("%q is another for a later attempt", id)
		}
	}
	if got := publish.MessageID(outbox.Message{Tenant: "acme", Consumer: "shop", Key: "order/17"}); got != "acme/shop/order%2F17" {
		t.Error(got)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	m := outbox.Message{Tenant: "acme", Consumer: "shop", Kind: "order.paid", Key: "17", Epoch: 4, Attempt: 2, Metadata: map[string]string{
		"traceparent": "00-1", "Fencepost-Id": "forged", "nats-Rollup": "all", "natsy": "x", "a b": "1",
	}}
	want := "[{fencepost-id acme/shop/17} {fencepost-key 17} {fencepost-tenant acme} {fencepost-kind order.paid} {fencepost-epoch 4} {fencepost-attempt 2} " +
		"{%46encepost-Id forged} {a b 1} {%6Eats-Rollup all} {natsy x} {traceparent 00-1}]"
	if got := fmt.Sprint(publish.Headers(m, "Nats-")); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got := fmt.Sprint(publish.Headers(outbox.Message{Consumer: "c", Key: "k", Kind: "x"})); strings.Contains(got, "tenant") {
		t.Error(got)
	}
}
