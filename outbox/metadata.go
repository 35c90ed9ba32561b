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

func decodeMetadata(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var metadata map[string]string
	if err := json.Unmarshal([]byte(text), &metadata); err != nil {
		return nil, err
	}
	return metadata, nil
}
