package eventstream

import (
	"encoding/json"
	"net/http"
)

// A Problem is what a client is told in place of a stream.
type Problem struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Action  string `json:"action"`
}

// Problems of every stream. The authoriser's own words are not for the client.
var (
	notAllowed      = Problem{http.StatusMethodNotAllowed, "method_not_allowed", "The stream is read with GET.", "Use GET."}
	unauthenticated = Problem{http.StatusUnauthorized, "unauthenticated", "The request does not say who asks.", "Authenticate, and ask again."}
	unavailable     = Problem{http.StatusServiceUnavailable, "unavailable", "The stream cannot be read at the moment.", "Try again."}

	Forbidden   = Problem{http.StatusForbidden, "forbidden", "This stream is not for who asks.", "Ask whoever runs this service."}
	Unsupported = Problem{http.StatusInternalServerError, "unsupported", "This server cannot stream.", "Ask whoever runs this service."}
)

// With is the problem in an error's words.
func (p Problem) With(err error) Problem {
	p.Message = err.Error()
	return p
}

// JSON is one line.
func (p Problem) JSON() []byte {
	text, _ := json.Marshal(p) // of strings, which cannot fail
	return text
}

// Answer answers a request whose stream has not begun.
func (p Problem) Answer(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	w.Write(append(p.JSON(), '\n'))
}

// NotGet answers a request by another method.
func NotGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	w.Header().Set("Allow", http.MethodGet)
	notAllowed.Answer(w)
	return true
}

// Unauthenticated answers a request of nobody.
func Unauthenticated(w http.ResponseWriter, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	unauthenticated.Answer(w)
}

// Unavailable answers while the database does not.
func Unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	unavailable.Answer(w)
}
