package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"

	"github.com/fencepost-go/fencepost/outbox"
)

// A Cursor is a place in the stream: after a certain event, of a certain store. It is a value, can be compared with ==, and travels as text,
// which callers should take as opaque. The zero Cursor is the place before the oldest event there is. A cursor grants nothing: what is read
// from it depends on the Filter alone.
type Cursor struct {
	incarnation           [16]byte
	transaction, position int64
	digest                [sha256.Size]byte // of the event there; zeros where there is none
}

const (
	cursorVersion = 1
	cursorSize    = 1 + 16 + 8 + 8 + sha256.Size
)

// IsZero says whether the cursor is the zero Cursor.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// Position is that of the event that the cursor is after; 0 where that is none. Positions are not in the order of the stream.
func (c Cursor) Position() int64 { return c.position }

// String is the cursor as text, "" for the zero Cursor: base64 of the kind for URLs, which ParseCursor reads.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorVersion)
	b = append(b, c.incarnation[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.transaction))
	b = binary.BigEndian.AppendUint64(b, uint64(c.position))
	b = append(b, c.digest[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads what String wrote. Anything else is outbox.ErrInvalid.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != cursorSize || b[0] != cursorVersion {
		return Cursor{}, failed("parse cursor", &outbox.InvalidError{Field: "Cursor", Problem: "is no cursor that this release writes"})
	}
	c := Cursor{
		incarnation: [16]byte(b[1:17]),
		transaction: int64(binary.BigEndian.Uint64(b[17:25])),
		position:    int64(binary.BigEndian.Uint64(b[25:33])),
		digest:      [sha256.Size]byte(b[33:]),
	}
	if c.transaction < 0 || c.position < 0 || c.String() != text { // a decoder reads over line ends, and the zero Cursor is ""
		return Cursor{}, failed("parse cursor", &outbox.InvalidError{Field: "Cursor", Problem: "is no cursor that this release writes"})
	}
	return c, nil
}

// MarshalText is String.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is ParseCursor.
func (c *Cursor) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCursor(string(text))
	return err
}

// compare orders places of one incarnation.
func (c Cursor) compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.transaction, d.transaction), cmp.Compare(c.position, d.position))
}

// cursorOf puts a place of a store together.
func cursorOf(incarnation string, transaction, position int64, digest []byte) Cursor {
	c := Cursor{transaction: transaction, position: position}
	_, _ = hex.Decode(c.incarnation[:], []byte(incarnation)) // which the schema checks
	copy(c.digest[:], digest)
	return c
}

// incarnationText is the incarnation as the tables have it, "" for the zero Cursor.
func (c Cursor) incarnationText() string {
	if c.IsZero() {
		return ""
	}
	return hex.EncodeToString(c.incarnation[:])
}

// digestBytes is the digest as the tables have it: nothing where there is no event.
func (c Cursor) digestBytes() []byte {
	if c.position == 0 {
		return []byte{}
	}
	return c.digest[:]
}
