package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
)

// digestVersion comes first in what is hashed, so that the format can change without two contents ever sharing a digest by accident.
const digestVersion = 1

// reserved metadata keys are set by the library itself (the trace a message belongs to). They are no part of the content: the same effect
// enqueued under another trace is the same effect.
var reserved = []string{"traceparent", "tracestate", "baggage"}

// digest identifies the content of an effect: same key and same digest is a duplicate, same key and another digest a conflict.
func digest(e Effect) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte{digestVersion})
	writePart(h, []byte(e.Target))
	writePart(h, []byte(e.Kind))
	writePart(h, []byte(e.OrderKey))
	writePart(h, e.Payload)
	for _, name := range slices.Sorted(maps.Keys(e.Metadata)) {
		if !slices.Contains(reserved, name) {
			writePart(h, []byte(name))
			writePart(h, []byte(e.Metadata[name]))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// writePart writes a length before the bytes, so that no two lists of parts run together to the same text.
func writePart(h hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}
