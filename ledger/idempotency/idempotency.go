package idempotency

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/ledger"
)

const (
	// Header is the request's header unless Config.Header says otherwise.
	Header = "Idempotency-Key"
	// Replayed is a header of every answer that was stored before.
	Replayed = "Idempotency-Replayed"
	// DefaultScope is the scope of all keys unless Config.Scope says otherwise.
	DefaultScope = "http"
	// DefaultMaxBody is the largest body in bytes unless Config.MaxBody says otherwise.
	DefaultMaxBody = 1 << 20

	leastResult   = 1 << 10
	claimTimeout  = 10 * time.Second // for a claim or its end, which go on whether or not the client is still there
	completeTries = 3
)

// A Tenant says whose request it is, by its credentials; ok is false for a request that may not be served. "" is a tenant too.
type Tenant func(r *http.Request) (tenant string, ok bool)

// Config of the middleware. The zero Config is a good one.
type Config struct {
	// Header is the name of the header. Default Header.
	Header string
	// Optional serves requests without the header as if there were no middleware. Default: they are refused.
	Optional bool
	// Methods are those that need a key, in capitals; others pass. Default POST and PATCH.
	Methods []string
	// Scope says what a key is unique within, beside the tenant: say, the API. Default DefaultScope for all.
	Scope func(r *http.Request) string
	// MaxBody is the largest body in bytes, which is read before the handler is called. Default DefaultMaxBody.
	MaxBody int64
	// Headers of an answer that are stored and replayed. Default Content-Type, Content-Encoding, Content-Language, ETag and Location.
	Headers []string
	// RetryAfter is what a client is told to wait, in whole seconds. Default 1 s.
	RetryAfter time.Duration
	// Untaken runs no handler again where the one before may have acted: it died, or it ended as the package's table calls unknown. The key is
	// held, and answered with 409, until somebody decides. Default: the key is free at once after such an end, taken over after a death.
	Untaken bool
	// Logger gets a record at ERROR when the ledger fails, when Untaken leaves a key to be decided, and when a request shows a mistake of the
	// service itself. Default slog.Default().
	Logger *slog.Logger
}

var (
	defaultMethods = []string{http.MethodPost, http.MethodPatch}
	defaultHeaders = []string{"Content-Type", "Content-Encoding", "Content-Language", "Etag", "Location"}
)

// New makes the middleware over a ledger, reporting every problem at once as outbox.ErrInvalid. It sends no statement.
func New(l *ledger.Ledger, tenant Tenant, config Config) (func(http.Handler) http.Handler, error) {
	var found refusal.Problems
	if l == nil {
		found.Add("ledger", "is nil")
	}
	if tenant == nil {
		found.Add("tenant", "is nil: without it one client would get the answers of another")
	}
	if config.Header == "" {
		config.Header = Header
	}
	if !isToken(config.Header) {
		found.Add("Header", "is no name of a header")
	}
	if len(config.Methods) == 0 {
		config.Methods = defaultMethods
	}
	for _, method := range config.Methods {
		if !isToken(method) || method != strings.ToUpper(method) {
			found.Addf("Methods", "has %q, which is no method in capitals: those that were meant would be unprotected", method)
		}
	}
	if config.Headers == nil {
		config.Headers = defaultHeaders
	}
	config.Methods, config.Headers = slices.Clone(config.Methods), slices.Clone(config.Headers)
	for i, name := range config.Headers {
		if !isToken(name) {
			found.Addf("Headers", "has %q, which is no name of a header", name)
		}
		config.Headers[i] = http.CanonicalHeaderKey(name)
	}
	if config.Scope == nil {
		config.Scope = func(*http.Request) string { return DefaultScope }
	}
	if config.MaxBody == 0 {
		config.MaxBody = DefaultMaxBody
	}
	if config.MaxBody < 0 {
		found.Addf("MaxBody", "is %d", config.MaxBody)
	}
	if config.RetryAfter == 0 {
		config.RetryAfter = time.Second
	}
	if l != nil && l.Config().MaxResult < leastResult {
		found.Addf("ledger", "has a MaxResult of %d, at least %d are needed", l.Config().MaxResult, leastResult)
	}
	found.Lasting("RetryAfter", config.RetryAfter, time.Second, time.Hour)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("idempotency: new: %w", err)
	}
	return func(next http.Handler) http.Handler { return &handler{l, tenant, config, next} }, nil
}
