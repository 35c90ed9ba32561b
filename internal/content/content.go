// Package content says what the content of an effect or an event is: the digest that tells a duplicate from a conflict, and the text that
// metadata is stored as.
package content

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"maps"
	"slices"

	"github.com/fencepost-go/fencepost/internal/bounds"
)

// version comes first in what is hashed, so that the format can change without two contents ever sharing a digest by accident.
const version = 1

// NewDigest starts a digest.
func NewDigest() hash.Hash {
	h := sha256.New()
	h.Write([]byte{version})
	return h
}

// Write writes parts, each behind its length, so that no two lists of parts run together to the same bytes.
func Write(h hash.Hash, parts ...[]byte) {
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
}

// WriteMetadata writes the names, sorted, and values, without the reserved names: the same content under another trace is the same content.
func WriteMetadata(h hash.Hash, metadata map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains(bounds.Reserved, name) {
			Write(h, []byte(name), []byte(metadata[name]))
		}
	}
}

// OfEffect identifies the content of an effect: same key and same digest is a duplicate, same key and another digest a conflict.
func OfEffect(target, kind, orderKey string, payload []byte, metadata map[string]string) [sha256.Size]byte {
	h := NewDigest()
	Write(h, []byte(target), []byte(kind), []byte(orderKey), payload)
	WriteMetadata(h, metadata)
	return [sha256.Size]byte(h.Sum(nil))
}

// EncodeMetadata gives the text that is stored: a JSON object with sorted keys, or nothing for none.
func EncodeMetadata(metadata map[string]string) (string, error) {
	if len(metadata) == 0 {
		return "", nil
	}
	text, err := json.Marshal(metadata)
	return string(text), err
}

// DecodeMetadata reads what EncodeMetadata wrote; ok is false for anything else, which only a row written by hand can hold.
func DecodeMetadata(text string) (metadata map[string]string, ok bool) {
	if text == "" {
		return nil, true
	}
	if err := json.Unmarshal([]byte(text), &metadata); err != nil {
		return nil, false
	}
	return metadata, true
}

// Bytes are the bytes as they are stored: nil becomes empty, since one driver would send NULL.
func Bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
