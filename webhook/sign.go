package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
)

// The headers of a webhook.
const (
	// HeaderID identifies what is told; it stays the same when that is sent again.
	HeaderID = "Webhook-Id"
	// HeaderTimestamp is when it was signed, in seconds since 1970.
	HeaderTimestamp = "Webhook-Timestamp"
	// HeaderSignature is a list of signatures, one for each secret of the sender.
	HeaderSignature = "Webhook-Signature"
)

const (
	versionSymmetric  = "v1"
	versionAsymmetric = "v1a"
)

// Sign gives the three headers of a webhook, with one signature for each secret: during a rotation the new one and the old. The id is of visible ASCII, without
// a full stop, which would end it in what is signed, and at most 255 bytes; else the error is outbox.ErrInvalid, as it is for secrets that cannot sign.
func Sign(id string, at time.Time, body []byte, secrets ...Secret) (http.Header, error) {
	var found refusal.Problems
	if !isID(id) || strings.Contains(id, ".") {
		found.Addf("id", "is not 1 to %d bytes of visible ASCII without a full stop", bounds.Key)
	}
	checkSecrets(&found, secrets, true)
	if err := found.Err(); err != nil {
		return nil, failed("sign", err)
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	content := signedContent(id, timestamp, body)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = s.key().sign(content)
	}
	return http.Header{HeaderID: {id}, HeaderTimestamp: {timestamp}, HeaderSignature: {strings.Join(signatures, " ")}}, nil
}

// isID says whether a text can be the id of a webhook and a key of the ledger.
func isID(id string) bool {
	return id != "" && len(id) <= bounds.Key && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

func signedContent(id, timestamp string, body []byte) []byte {
	return slices.Concat([]byte(id), []byte("."), []byte(timestamp), []byte("."), body)
}

func (k *key) sign(content []byte) string {
	if k.symmetric != nil {
		return versionSymmetric + "," + encoding.EncodeToString(k.mac(content))
	}
	return versionAsymmetric + "," + encoding.EncodeToString(ed25519.Sign(k.private, content))
}

func (k *key) mac(content []byte) []byte {
	h := hmac.New(sha256.New, k.symmetric)
	h.Write(content)
	return h.Sum(nil)
}
