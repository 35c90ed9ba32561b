package outbox

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/fencepost-go/fencepost/internal/bounds"
)

const (
	secretPrefix = "fpw_" // by which scanners for secrets find one
	secretBytes  = 32
	saltBytes    = 16
	hashBytes    = 32
	// iterations of new credentials. A slow hash is for what can be guessed, which 256 random bits cannot: few keep a start quick.
	iterations = 10_000

	redacted = "redacted"
)

// A Credential is how a named worker proves who it is: its name and a secret. However it is printed, logged or encoded it reads "redacted", also
// as part of something else; Reveal alone gives its text. The zero Credential is none.
type Credential struct {
	name   string
	reveal func() string // which no printer that walks over fields can look into
}

// ParseCredential reads a credential as Reveal gives it: NAME:fpw_ and 64 hexadecimal digits, without a newline: what comes from a file goes through
// strings.TrimSpace first. Its error repeats nothing of the text.
func ParseCredential(text string) (Credential, error) {
	var found problems
	at := max(strings.LastIndex(text, ":"), 0)
	name, secret := text[:at], strings.TrimPrefix(text[at:], ":")
	digits, marked := strings.CutPrefix(secret, secretPrefix)
	raw, err := hex.DecodeString(digits)
	nameless := false
	bounds.CheckName(name, maxName, func(string) { nameless = true })
	if !marked || err != nil || len(raw) != secretBytes || digits != strings.ToLower(digits) || nameless {
		found.addf("Credential", "is not a worker's name, a colon, %s and %d hexadecimal digits", secretPrefix, 2*secretBytes)
		return Credential{}, failed("parse credential", found.err())
	}
	return Credential{name, func() string { return secret }}, nil
}

// newCredential draws one.
func newCredential(name string) Credential {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // never fails: it ends the program instead
	secret := secretPrefix + hex.EncodeToString(raw)
	return Credential{name, func() string { return secret }}
}

// Name is the worker's.
func (c Credential) Name() string { return c.name }

// IsZero says whether there is none.
func (c Credential) IsZero() bool { return c.reveal == nil }

// Reveal is the text of the credential, for the place where it is kept and for nowhere else; "" of the zero Credential.
func (c Credential) Reveal() string {
	if c.IsZero() {
		return ""
	}
	return c.name + ":" + c.reveal()
}

// hash is what a database keeps of the secret.
func (c Credential) hash(salt []byte, iterations int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, c.reveal(), salt, iterations, hashBytes)
}

// String implements fmt.Stringer.
func (Credential) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Credential) GoString() string { return redacted }

// Format implements fmt.Formatter, for verbs that ask no other method.
func (Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements json.Marshaler.
func (Credential) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText implements encoding.TextMarshaler.
func (Credential) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (Credential) LogValue() slog.Value { return slog.StringValue(redacted) }
