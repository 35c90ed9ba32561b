package webhook

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"strings"

	"github.com/fencepost-go/fencepost/internal/refusal"
)

const (
	prefixSymmetric = "whsec_" // HMAC-SHA256, signature v1
	prefixPrivate   = "whsk_"  // ed25519, signature v1a
	prefixPublic    = "whpk_"

	leastSecret    = 24 // bytes
	largestSecret  = 64
	someSecret     = 32
	redactedSecret = "***"
)

var encoding = base64.StdEncoding.Strict()

// A Secret signs webhooks or verifies them. It is made by ParseSecret, NewSecret or NewKeyPair, prints as its prefix and three stars, and is never told
// but by Reveal. The zero Secret is none, and refused.
type Secret struct {
	// A function prints as an address even where fmt may not call String: in an unexported field, which it reads through pointers.
	hidden func() *key
}

func secretOf(k key) Secret { return Secret{func() *key { return &k }} }

// key is nil for the zero Secret.
func (s Secret) key() *key {
	if s.hidden == nil {
		return nil
	}
	return s.hidden()
}

type key struct {
	prefix    string
	symmetric []byte
	private   ed25519.PrivateKey // of whsk_
	public    ed25519.PublicKey  // of whsk_ and whpk_
}

// ParseSecret reads a secret as the specification writes it: whsec_ before 24 to 64 bytes in base64 for HMAC-SHA256; for ed25519 whsk_ before a seed of
// 32 bytes, or the 64 of a private key, and whpk_ before a public key, which only verifies. The error is outbox.ErrInvalid and has nothing of the text.
func ParseSecret(text string) (Secret, error) {
	var found refusal.Problems
	secret := parseSecret(text, &found)
	if err := found.Err(); err != nil {
		return Secret{}, failed("secret", err)
	}
	return secret, nil
}

func parseSecret(text string, found *refusal.Problems) Secret {
	const field = "secret"
	name, encoded, _ := strings.Cut(text, "_")
	k := key{prefix: name + "_"}
	raw, err := encoding.DecodeString(encoded)
	switch {
	case k.prefix != prefixSymmetric && k.prefix != prefixPrivate && k.prefix != prefixPublic:
		found.Addf(field, "does not begin with %s, %s or %s", prefixSymmetric, prefixPrivate, prefixPublic)
	case err != nil || len(raw) == 0:
		found.Addf(field, "has no base64 behind %s", k.prefix)
	case bytes.Count(raw, raw[:1]) == len(raw):
		found.Add(field, "is a placeholder: all its bytes are the same")
	case k.prefix == prefixSymmetric && (len(raw) < leastSecret || len(raw) > largestSecret):
		found.Addf(field, "has %d bytes, not %d to %d", len(raw), leastSecret, largestSecret)
	case k.prefix == prefixSymmetric:
		k.symmetric = raw
	case k.prefix == prefixPublic && len(raw) != ed25519.PublicKeySize:
		found.Addf(field, "has %d bytes, not %d", len(raw), ed25519.PublicKeySize)
	case k.prefix == prefixPublic:
		k.public = raw
	case len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize:
		found.Addf(field, "has %d bytes, not %d or %d", len(raw), ed25519.SeedSize, ed25519.PrivateKeySize)
	default:
		k = privateKey(raw[:ed25519.SeedSize])
		if len(raw) == ed25519.PrivateKeySize && !bytes.Equal(raw, k.private) {
			found.Add(field, "has a public half that is not its own")
		}
	}
	return secretOf(k)
}

// NewSecret draws a secret for HMAC-SHA256. Use it for one endpoint only: who verifies with it can sign with it.
func NewSecret() Secret {
	raw := make([]byte, someSecret)
	_, _ = rand.Read(raw) // it never fails
	return secretOf(key{prefix: prefixSymmetric, symmetric: raw})
}

// NewKeyPair draws a key for ed25519: private signs, public is what receivers get.
func NewKeyPair() (private, public Secret) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // it never fails
	k := privateKey(seed)
	return secretOf(k), secretOf(key{prefix: prefixPublic, public: k.public})
}

func privateKey(seed []byte) key {
	private := ed25519.NewKeyFromSeed(seed)
	return key{prefix: prefixPrivate, private: private, public: private.Public().(ed25519.PublicKey)}
}

// Reveal is the text that ParseSecret reads: to be kept in a safe place, or told to who it is for. Nothing else tells it.
func (s Secret) Reveal() string {
	switch k := s.key(); {
	case k == nil:
		return ""
	case k.symmetric != nil:
		return k.prefix + encoding.EncodeToString(k.symmetric)
	case k.private != nil:
		return k.prefix + encoding.EncodeToString(k.private.Seed())
	default:
		return k.prefix + encoding.EncodeToString(k.public)
	}
}

// String tells the kind of secret alone.
func (s Secret) String() string {
	k := s.key()
	if k == nil {
		return "no secret"
	}
	return k.prefix + redactedSecret
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoding/json and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// maxSecrets bounds the secrets of one endpoint or origin: a rotation needs two.
const maxSecrets = 8

// checkSecrets refuses a set that cannot serve.
func checkSecrets(found *refusal.Problems, secrets []Secret, sign bool) {
	const field = "Secrets"
	found.Between(field, len(secrets), 1, maxSecrets)
	for _, s := range secrets {
		switch k := s.key(); {
		case k == nil:
			found.Add(field, "has an empty one")
		case sign && k.prefix == prefixPublic:
			found.Add(field, "has a public key, which cannot sign")
		}
	}
}
