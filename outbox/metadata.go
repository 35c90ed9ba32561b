package outbox

import (
	"encoding/json"
)

// encodeMetadata gives the text that is stored: a JSON object with sorted keys, or nothing for none.
func encodeMetadata(metadata map[string]string) (string, error) {
	if len(metadata) == 0 {
		return "", nil
	}
	text, err := json.Marshal(metadata)
	return string(text), err
}

// metadataOf reads what encodeMetadata wrote. Only a row written by hand can hold anything else; it must not poison the batch it is leased
// with, so its message goes on without metadata.
func (b *Box) metadataOf(id int64, text string) map[string]string {
	if text == "" {
		return nil
	}
	var metadata map[string]string
	if err := json.Unmarshal([]byte(text), &metadata); err != nil {
		b.log.Warn("metadata is not a JSON object of strings", "id", id)
		return nil
	}
	return metadata
}
