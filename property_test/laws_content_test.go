package property_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/outbox"
)

// parts are short and alike, so that lists of them run together to the same text often.
func parts() *rapid.Generator[string] { return rapid.StringMatching(`[ab]{1,3}`) }

func drawContent(t *rapid.T) outbox.Effect {
	e := outbox.Effect{Consumer: "mail", Target: parts().Draw(t, "target"), Kind: parts().Draw(t, "kind"), Key: "k"}
	if rapid.Bool().Draw(t, "ordered") {
		e.OrderKey = parts().Draw(t, "order key")
	}
	e.Payload = []byte(rapid.StringMatching(`[ab]{0,3}`).Draw(t, "payload"))
	e.Metadata = rapid.MapOfN(parts(), parts(), 0, 3).Draw(t, "metadata")
	return e
}

// Two effects of one key are the same exactly when target, kind, order key, payload and metadata are (I20): never by accident of how the
// parts run together, and whatever key, tenant, priority, time or age.
func TestDigestTellsContents(t *testing.T) {
	t.Parallel()
	inMemory(t, outbox.Config{}, func(c *court) {
		one := drawContent(c.T)
		other := one
		switch rapid.IntRange(0, 6).Draw(c.T, "other") {
		case 0:
			other = drawContent(c.T)
		case 1: // a byte moves over a border between parts
			other.Target, other.Kind = one.Target+one.Kind[:1], one.Kind[1:]+"a"
		case 2:
			other.OrderKey, other.Payload = one.OrderKey+string(one.Payload), nil
		case 3: // the payload becomes metadata
			other.Payload, other.Metadata = nil, map[string]string{"a": string(one.Payload)}
		case 4: // a name becomes a value
			other.Metadata = map[string]string{}
			for name, value := range one.Metadata {
				other.Metadata[value] = name
			}
		case 5:
			other.Metadata = maps.Clone(one.Metadata)
			if other.Metadata == nil {
				other.Metadata = map[string]string{}
			}
			other.Metadata[parts().Draw(c.T, "name")] = parts().Draw(c.T, "value")
		}
		other.Priority = int16(rapid.Int16().Draw(c.T, "priority"))
		other.Delay = unit
		same := content(one) == content(other)

		c.enqueue(one)
		tx := c.stage.begin(c.tb)
		receipt, err := c.box.Enqueue(c.ctx, tx.Tx, other)
		switch {
		case same && (err != nil || receipt.Status != outbox.Duplicate):
			c.Fatalf("the same content: %v, %v", receipt.Status, err)
		case !same && (!errors.Is(err, outbox.ErrKeyConflict) || receipt.Status != outbox.Conflicted):
			c.Fatalf("other content: %v, %v", receipt.Status, err)
		}
		other.Key, other.Tenant = "another", "acme"
		receipt = of(c.box.Enqueue(c.ctx, tx.Tx, other)).must(c)
		if err := tx.commit(); err != nil {
			c.Fatal(err)
		}
		digests := map[int64][]byte{}
		for _, m := range c.stage.dump(c.tb).Messages {
			digests[m.ID] = m.Digest
		}
		if len(digests) != 2 || bytes.Equal(digests[1], digests[receipt.ID]) != same {
			c.Fatalf("digests %x, same content: %t", digests, same)
		}
	})
}

// Metadata and payload come back byte for byte, or the effect is refused before any statement (I17, I30).
func TestContentComesBack(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		e := effect("k")
		anything := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) })
		texts := rapid.OneOf(rapid.String(), rapid.StringN(0, 40, 200), anything)
		e.Metadata = rapid.MapOfN(texts, texts, 0, 5).Draw(c.T, "metadata")
		e.Payload = rapid.SliceOf(rapid.Byte()).Draw(c.T, "payload")
		tx := c.stage.begin(c.tb)
		_, err := c.box.Enqueue(c.ctx, tx.Tx, e)
		if commitErr := tx.commit(); commitErr != nil {
			c.Fatalf("the transaction cannot go on: %v", commitErr)
		}
		legal := true
		for name, value := range e.Metadata {
			legal = legal && strings.TrimSpace(name) != "" && storable(name) && storable(value)
		}
		if !legal {
			if !errors.Is(err, outbox.ErrInvalid) {
				c.Fatalf("illegal metadata: %v", err)
			}
			return
		}
		if err != nil {
			c.Fatal(err)
		}
		message := c.lease(c.consumer(outbox.Policy{}))[0]
		if !maps.Equal(message.Metadata, e.Metadata) || (message.Metadata == nil) != (len(e.Metadata) == 0) {
			c.Fatalf("metadata %q came back as %q", e.Metadata, message.Metadata)
		}
		if !bytes.Equal(message.Payload, e.Payload) || message.Payload == nil {
			c.Fatalf("payload %q came back as %q", e.Payload, message.Payload)
		}
		if text := c.stage.dump(c.tb).Messages[0].Metadata; text != "" && !json.Valid([]byte(text)) {
			c.Fatalf("metadata is stored as %q", text)
		}
	})
}

func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// anyText is what an error may say: any bytes, long runs of them, and runes of every length around the bounds.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.String(),
		rapid.Custom(func(t *rapid.T) string {
			part := rapid.SampledFrom([]string{"x", "é", "€", "𝄞", "\x00", "\xff", "\x1b[31m", " ", "\n", "\u0085", "\ufffd"})
			times := rapid.SampledFrom([]int{0, 60, 64, 255, 256, 1024, 4095, 4096, 5000, 70_000})
			head, tail := rapid.SliceOfN(part, 0, 4).Draw(t, "head"), rapid.SliceOfN(part, 0, 4).Draw(t, "tail")
			return strings.Join(head, "") + strings.Repeat(part.Draw(t, "body"), times.Draw(t, "times")) + strings.Join(tail, "")
		}),
	)
}

// sanitised is a text as it may be recorded, written another way than the library's. Nobody looks further than 64 KiB.
func sanitised(text string) string {
	text = text[:min(len(text), 64<<10)]
	return strings.TrimSpace(runesUpTo(strings.TrimSpace(visible(text)), 4096))
}

// runesUpTo are the first runes of a text that fit.
func runesUpTo(text string, bound int) string {
	size := 0
	for _, r := range text {
		if size+utf8.RuneLen(r) > bound {
			break
		}
		size += utf8.RuneLen(r)
	}
	return text[:size]
}

// visible replaces each byte that is not UTF-8, and each control character but tab and line breaks.
func visible(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		text = text[size:]
	}
	return b.String()
}

// Recording a failure cannot fail (I26): whatever an error says, the message is settled, and what is kept of the text is what can be stored
// of it, at most the bound, cut on a rune.
func TestAnyReasonIsRecorded(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		consumer := c.consumer(outbox.Policy{MaxAttempts: 2})
		given := anyText().Draw(c.T, "text")
		outcome := outbox.OutcomeOf(errors.New(given))
		c.enqueue(effect("k"))
		retried := c.settle(consumer, outbox.Settling{Message: c.lease(consumer)[0], Outcome: outcome})
		c.stage.age(c.tb, unit)
		died := c.settle(consumer, outbox.Settling{Message: c.lease(consumer)[0], Outcome: outcome})
		if retried.Status != outbox.RetryScheduled || died.Status != outbox.DeadLettered {
			c.Fatalf("settled as %v and %v", retried.Status, died.Status)
		}
		settlement := c.stage.dump(c.tb).Settlements[0]
		want := sanitised(outcome.Reason())
		if want == "" { // words of the library's own stand for it
			want = died.Reason
		}
		for bound, got := range map[int]string{256: retried.Reason, 4096: died.Reason} {
			want := runesUpTo(want, bound)
			if got != want || !storable(got) || len(got) > bound || strings.TrimSpace(got) == "" {
				c.Fatalf("of %q is kept %q, not %q", given, got, want)
			}
		}
		if settlement.Reason != died.Reason {
			c.Fatalf("recorded %q, answered %q", settlement.Reason, died.Reason)
		}
	})
}

// A redactor may answer with anything, or panic: the message is settled, and nothing of the text is kept that it took out (I26).
func TestAnyRedactorIsSurvived(t *testing.T) {
	t.Parallel()
	var answer func() string
	config := outbox.Config{Redact: func(string) string { return answer() }}
	inMemory(t, config, func(c *court) {
		redacted := anyText().Draw(c.T, "redacted")
		panics := rapid.Bool().Draw(c.T, "panics")
		answer = func() string {
			if panics {
				panic(redacted)
			}
			return redacted
		}
		consumer := c.consumer(outbox.Policy{})
		c.enqueue(effect("k"))
		result := c.settle(consumer, outbox.Settling{Message: c.lease(consumer)[0], Outcome: outbox.Failed(outbox.Permanent(errors.New("secret")))})
		if result.Status != outbox.DeadLettered || !storable(result.Reason) || strings.TrimSpace(result.Reason) == "" || len(result.Reason) > 4096 {
			c.Fatalf("settled as %v for %q", result.Status, result.Reason)
		}
		if strings.Contains(result.Reason, "secret") && !strings.Contains(redacted, "secret") {
			c.Fatalf("the secret is kept: %q", result.Reason)
		}
	})
}
