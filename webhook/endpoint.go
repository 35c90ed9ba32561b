package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// An Endpoint is where webhooks are posted. It prints as its scheme and host alone, since the rest of a URL is often a secret too.
type Endpoint struct {
	// URL is http or https, without user or password.
	URL string
	// Secrets sign, each with a signature of its own: one, or during a rotation the new one and the old. At most 8.
	Secrets []Secret
	// Header goes along, such as an Authorization. Content-Type is application/json unless it is here. Those of the specification and of the connection
	// are refused.
	Header http.Header
}

// An EndpointFunc says where a message goes: by its target, its tenant, or what the payload says. Its errors are those of a handler: an endpoint that was
// disabled is outbox.Moot, one that cannot be looked up now is a plain error.
type EndpointFunc func(context.Context, outbox.Message) (Endpoint, error)

// To sends every message to one endpoint. The error is outbox.ErrInvalid.
func To(endpoint Endpoint) (EndpointFunc, error) {
	if err := endpoint.Check(); err != nil {
		return nil, err
	}
	endpoint.Secrets, endpoint.Header = slices.Clone(endpoint.Secrets), endpoint.Header.Clone()
	return func(context.Context, outbox.Message) (Endpoint, error) { return endpoint, nil }, nil
}

// Check finds everything wrong with an endpoint, for whoever registers one. It resolves no name: whether the address may be connected to shows when it is.
// The error is outbox.ErrInvalid and has nothing of the URL.
func (e Endpoint) Check() error {
	var found refusal.Problems
	e.check(&found)
	return failed("endpoint", found.Err())
}

// check gives the URL; nil if there are problems.
func (e Endpoint) check(found *refusal.Problems) *url.URL {
	u, err := url.Parse(e.URL)
	if err != nil {
		found.Add("URL", "is no URL")
		u = nil
	} else {
		checkURL(found, u)
	}
	checkSecrets(found, e.Secrets, true)
	for name, values := range e.Header {
		if problem := headerProblem(name, values); problem != "" {
			found.Addf("Header", "%q %s", name, problem)
		}
	}
	return u
}

func checkURL(found *refusal.Problems, u *url.URL) {
	if u.Scheme != "http" && u.Scheme != "https" {
		found.Add("URL", "is neither http nor https")
	}
	if u.User != nil {
		found.Add("URL", "has a user or a password")
	}
	if u.Hostname() == "" || u.Opaque != "" {
		found.Add("URL", "has no host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			found.Add("URL", "has no port between 1 and 65535")
		}
	}
}

// reserved are the headers that a request or its connection sets by itself.
var reserved = []string{
	HeaderID, HeaderTimestamp, HeaderSignature, "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// headerProblem says what is wrong with a header (RFC 9110, section 5); net/http would tell it as if there were no connection.
func headerProblem(name string, values []string) string {
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }):
		return "is no name of a header"
	case slices.Contains(reserved, http.CanonicalHeaderKey(name)):
		return "is set by the request itself"
	case slices.ContainsFunc(values, func(v string) bool {
		return strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
	}):
		return "has a control character"
	}
	return ""
}

// String tells scheme and host alone.
func (e Endpoint) String() string {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" {
		return "endpoint without a host"
	}
	return hostOf(u)
}

func hostOf(u *url.URL) string { return fmt.Sprintf("%s://%s", u.Scheme, u.Host) }

// GoString is String.
func (e Endpoint) GoString() string { return e.String() }

// LogValue is String.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MarshalText is String, for encoding/json and its like.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }
