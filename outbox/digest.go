package outbox

import (
	"crypto/sha256"

	"github.com/fencepost-go/fencepost/internal/content"
)

// digest identifies the content of an effect: same key and same digest is a duplicate, same key and another digest a conflict.
func digest(e Effect) [sha256.Size]byte {
	h := content.NewDigest()
	content.Write(h, []byte(e.Target), []byte(e.Kind), []byte(e.OrderKey), e.Payload)
	content.WriteMetadata(h, e.Metadata)
	return [sha256.Size]byte(h.Sum(nil))
}
