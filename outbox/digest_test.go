package outbox

import (
	"encoding/hex"
	"maps"
	"testing"

	"github.com/fencepost-go/fencepost/internal/content"
)

func sampleEffect() Effect {
	return Effect{
		Tenant: "acme", Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "order-1", OrderKey: "account-1",
		Payload: []byte(`{"amount":1}`), Metadata: map[string]string{"b": "2", "a": "1"},
	}
}

// A change of the format would turn every stored key into a conflict: it needs a new version and rules for the old one.
func TestDigestIsFixed(t *testing.T) {
	t.Parallel()
	const want = "d91c29eae87baeb3ddae98d1c58b167be87d8ee35bc3884569a33fe722445a55"
	sum := digest(sampleEffect())
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("digest is %s, was %s", got, want)
	}
}

// Shows: S4.13
func TestDigestCoversContentAndNothingElse(t *testing.T) {
	t.Parallel()
	base := digest(sampleEffect())
	for name, change := range map[string]func(*Effect){
		"target":         func(e *Effect) { e.Target = "other" },
		"kind":           func(e *Effect) { e.Kind = "other" },
		"order key":      func(e *Effect) { e.OrderKey = "" },
		"payload":        func(e *Effect) { e.Payload = []byte(`{"amount": 1}`) },
		"no payload":     func(e *Effect) { e.Payload = nil },
		"metadata value": func(e *Effect) { e.Metadata["a"] = "3" },
		"metadata name":  func(e *Effect) { e.Metadata["c"] = "" },
		"no metadata":    func(e *Effect) { e.Metadata = nil },
		"shifted parts":  func(e *Effect) { e.Target, e.Kind = "ledgerc", "harge" },
		"moved metadata": func(e *Effect) { e.Metadata = map[string]string{"a": "1b", "": "2"} },
	} {
		e := sampleEffect()
		e.Metadata = maps.Clone(e.Metadata)
		if change(&e); digest(e) == base {
			t.Errorf("%s does not change the digest", name)
		}
	}
	for name, change := range map[string]func(*Effect){
		"identity":    func(e *Effect) { e.Tenant, e.Consumer, e.Key = "x", "y", "z" },
		"timing":      func(e *Effect) { e.Delay, e.MaxAge, e.Priority = 1, 2, 3 },
		"source":      func(e *Effect) { e.SourcePosition, e.SourceEventID = 1, "e" },
		"trace":       func(e *Effect) { e.Metadata["traceparent"] = "00-1" },
		"trace state": func(e *Effect) { e.Metadata["tracestate"], e.Metadata["baggage"] = "s", "b" },
	} {
		e := sampleEffect()
		e.Metadata = maps.Clone(e.Metadata)
		if change(&e); digest(e) != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	empty, nothing := sampleEffect(), sampleEffect()
	empty.Payload, empty.Metadata = []byte{}, map[string]string{}
	nothing.Payload, nothing.Metadata = nil, nil
	if digest(empty) != digest(nothing) {
		t.Error("nil and empty differ")
	}
}

func TestMetadataSurvives(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	for _, metadata := range []map[string]string{
		nil, {"a": ""}, {"<&>": "\u2028 \\ \" \t\n\x01"}, {"é": "日本", "z": "1", "a": "2"},
	} {
		text, err := content.EncodeMetadata(metadata)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.box.metadataOf(1, text); !maps.Equal(got, metadata) {
			t.Errorf("%q came back as %q", metadata, got)
		}
	}
	if text, _ := content.EncodeMetadata(map[string]string{"b": "2", "a": "1"}); text != `{"a":"1","b":"2"}` {
		t.Errorf("encoded as %s", text)
	}
	log := &recorder{}
	b = newBench(t, Config{Logger: log.logger()}, Policy{})
	for _, text := range []string{"{", `{"a":1}`, "[]", "\x00"} {
		if got := b.box.metadataOf(1, text); got != nil {
			t.Errorf("%q came back as %q", text, got)
		}
	}
	if len(log.lines()) != 4 {
		t.Errorf("logged %q", log.lines())
	}
}
