package content

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Unquoted says where a payload is wrong without repeating any of it, as the errors of encoding/json do.
func Unquoted(err error) string {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &mismatch):
		return fmt.Sprintf("field %q takes a %s, at byte %d", mismatch.Field, mismatch.Type, mismatch.Offset)
	default:
		return "refused by its type"
	}
}
