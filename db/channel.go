package db

import (
	"crypto/sha256"
	"encoding/hex"
)

// Channel is the notification channel of a schema: its name, or a digest where the name would exceed the server's 63 bytes.
func Channel(schema string) string {
	name := "fencepost_" + schema
	if len(name) > 63 {
		sum := sha256.Sum256([]byte(schema))
		name = "fencepost_" + hex.EncodeToString(sum[:16])
	}
	return name
}
