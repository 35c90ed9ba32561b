package outbox

import (
	"crypto/sha256"

	"github.com/fencepost-go/fencepost/internal/content"
)

// digest identifies the content of an effect.
func digest(e Effect) [sha256.Size]byte {
	return content.OfEffect(e.Target, e.Kind, e.OrderKey, e.Payload, e.Metadata)
}
