package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
)

// DefaultTolerance is how far a timestamp may lie from this host's clock, either way, unless one says otherwise.
const DefaultTolerance = 5 * time.Minute

const (
	longestTolerance = 24 * time.Hour
	// maxSignatures bounds the work that a request without a good signature makes.
	maxSignatures = 32
	timestampSize = 12 // digits
)

// Signed is what the signature of a request vouches for beside its body.
type Signed struct {
	// ID is the same each time a webhook is sent: what to claim. The signature says nothing about whether it came before.
	ID string
	// At is when it was signed, to the second, in UTC.
	At time.Time
}

// Verify checks that the body, byte for byte as it came, and the id and time in the header were signed with one of the secrets, and not longer ago, nor
// further in the future, than tolerance (0: DefaultTolerance). During a rotation give the new secret and the old. Comparisons take the same time
// whatever they find, and each secret is tried.
//
// A request that does not verify is a *VerifyError. Secrets and a tolerance that cannot serve are outbox.ErrInvalid, and say nothing about the request.
func Verify(header http.Header, body []byte, secrets []Secret, tolerance time.Duration) (Signed, error) {
	signed, err := verify(time.Now(), header, body, secrets, tolerance)
	return signed, failed("verify", err)
}

func verify(now time.Time, header http.Header, body []byte, secrets []Secret, tolerance time.Duration) (Signed, error) {
	var found refusal.Problems
	checkSecrets(&found, secrets, false)
	tolerance = checkTolerance(&found, "tolerance", tolerance)
	if err := found.Err(); err != nil {
		return Signed{}, err
	}
	head, err := parseHeader(header)
	if err != nil {
		return Signed{}, err
	}
	signed := Signed{ID: head.id, At: head.at}
	switch age := now.Sub(head.at); {
	case age > tolerance:
		return Signed{}, &VerifyError{HeaderTimestamp, ErrTooOld}
	case age < -tolerance:
		return Signed{}, &VerifyError{HeaderTimestamp, ErrTooNew}
	}
	content := signedContent(head.id, head.timestamp, body)
	matched := false
	for _, s := range secrets {
		matched = s.key().matches(content, head.signatures) || matched
	}
	if !matched {
		return Signed{}, &VerifyError{HeaderSignature, ErrNoMatch}
	}
	return signed, nil
}

func checkTolerance(found *refusal.Problems, field string, tolerance time.Duration) time.Duration {
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	found.Lasting(field, tolerance, time.Second, longestTolerance)
	return tolerance
}

// matches says whether one of the signatures is the key's.
func (k *key) matches(content []byte, signatures []signature) (matched bool) {
	var mac []byte
	if k.symmetric != nil {
		mac = k.mac(content)
	}
	for _, given := range signatures {
		switch {
		case mac != nil && given.version == versionSymmetric:
			matched = hmac.Equal(mac, given.raw) || matched
		case mac == nil && given.version == versionAsymmetric:
			matched = ed25519.Verify(k.public, content, given.raw) || matched
		}
	}
	return matched
}

type signature struct {
	version string
	raw     []byte
}

// A head is what the three headers say.
type head struct {
	id         string
	timestamp  string // as it came, which is what is signed
	at         time.Time
	signatures []signature
}

func parseHeader(header http.Header) (h head, err error) {
	var text string
	if h.id, err = only(header, HeaderID); err != nil {
		return h, err
	}
	if h.timestamp, err = only(header, HeaderTimestamp); err != nil {
		return h, err
	}
	if text, err = only(header, HeaderSignature); err != nil {
		return h, err
	}
	if !isID(h.id) {
		return h, &VerifyError{HeaderID, ErrMalformed}
	}
	if h.at, err = parseTimestamp(h.timestamp); err != nil {
		return h, err
	}
	h.signatures, err = parseSignatures(text)
	return h, err
}

// only gives a header's value. One that is there twice is refused: two readers could each take another.
func only(header http.Header, name string) (string, error) {
	values := header.Values(name)
	switch {
	case len(values) > 1:
		return "", &VerifyError{name, ErrMalformed}
	case len(values) == 0 || values[0] == "":
		return "", &VerifyError{name, ErrMissingHeader}
	}
	return values[0], nil
}

// parseTimestamp takes seconds in their one form: no sign, no leading zero.
func parseTimestamp(text string) (time.Time, error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || len(text) > timestampSize || strconv.FormatInt(seconds, 10) != text {
		return time.Time{}, &VerifyError{HeaderTimestamp, ErrMalformed}
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// parseSignatures reads a list such as "v1,K5oZ… v1a,hnO3…". What cannot be read in it matches nothing, but a list with nothing that can is malformed; versions that
// nobody knows yet are passed over.
func parseSignatures(text string) (all []signature, err error) {
	parts := strings.SplitN(text, " ", maxSignatures+1)
	for _, part := range parts {
		version, encoded, ok := strings.Cut(part, ",")
		if !ok {
			continue
		}
		if raw, err := encoding.DecodeString(encoded); err == nil && len(raw) > 0 {
			all = append(all, signature{version, raw})
		}
	}
	if len(all) == 0 || len(parts) > maxSignatures {
		return nil, &VerifyError{HeaderSignature, ErrMalformed}
	}
	return all, nil
}
