package property_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// A cursor is one text, and a text at most one cursor: what ParseCursor does not refuse is written again as it was.
//
// Shows: S4.19 I36
func TestCursorIsItsText(t *testing.T) {
	t.Parallel()
	bytes := rapid.Custom(func(t *rapid.T) []byte {
		size := rapid.SampledFrom([]int{65, 65, 65, 65, 64, 66, 0}).Draw(t, "size")
		b := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.Just(byte(0))), size, size).Draw(t, "bytes")
		if size > 0 {
			b[0] = rapid.SampledFrom([]byte{1, 1, 1, 0, 2}).Draw(t, "version")
		}
		return b
	})
	texts := rapid.Custom(func(t *rapid.T) string {
		text := base64.RawURLEncoding.EncodeToString(bytes.Draw(t, "bytes"))
		if at := rapid.IntRange(0, 2*len(text)).Draw(t, "at"); at <= len(text) {
			text = text[:at] + rapid.SampledFrom([]string{"\n", "\r", "=", " ", "A", "+", "\x00"}).Draw(t, "foreign") + text[at:]
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(texts, texts, rapid.String()).Draw(t, "text")
		c, err := events.ParseCursor(text)
		if err != nil {
			if !errors.Is(err, outbox.ErrInvalid) || !c.IsZero() {
				t.Fatalf("%q is refused by %+v, %v", text, c, err)
			}
			return
		}
		marshalled, err := c.MarshalText()
		var again events.Cursor
		if err == nil {
			err = again.UnmarshalText(marshalled)
		}
		if c.String() != text || string(marshalled) != text || again != c || err != nil || c.IsZero() != (text == "") {
			t.Fatalf("%q is written as %q and %q, and read as %+v and %+v, %v", text, c, marshalled, c, again, err)
		}
	})
}

// The cursor of an event is a place; a cursor that differs in any bit is none.
//
// Shows: S4.19 I36
func TestCursorOfNoPlace(t *testing.T) {
	t.Parallel()
	everywhere(t, outbox.Config{}, func(c *court) {
		log := of(events.New(c.box, events.Config{})).must(c)
		n := rapid.IntRange(1, 5).Draw(c.T, "events")
		for i := range n {
			c.append(log, events.Event{ID: fmt.Sprint("e-", i), Type: "a"})
		}
		stream := c.stream(log, n)
		at := rapid.IntRange(0, n-1).Draw(c.T, "at")
		cursor := stream[at].Cursor()
		page := of(log.Read(c.ctx, of(events.ParseCursor(cursor.String())).must(c), 10, events.Filter{})).must(c)
		if fmt.Sprint(ids(page.Events)) != fmt.Sprint(ids(stream[at+1:])) {
			c.Fatalf("after %q come %v", stream[at].ID, ids(page.Events))
		}
		b := of(base64.RawURLEncoding.DecodeString(cursor.String())).must(c)
		bit := rapid.IntRange(0, 8*len(b)-1).Draw(c.T, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		forged, err := events.ParseCursor(base64.RawURLEncoding.EncodeToString(b))
		if err == nil {
			page, err = log.Read(c.ctx, forged, 10, events.Filter{})
		}
		if !errors.Is(err, outbox.ErrInvalid) && !errors.Is(err, events.ErrCursorUnknown) {
			c.Fatalf("bit %d of the cursor of %q changed: %+v, %v", bit, stream[at].ID, page, err)
		}
	})
}
