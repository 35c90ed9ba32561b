package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
)

// Defaults of a PosterConfig.
const (
	DefaultTimeout        = 20 * time.Second // the specification recommends 15 to 30 s
	DefaultConnectTimeout = 10 * time.Second
	DefaultMaxRetryAfter  = time.Hour
)

const (
	shortestTimeout   = 10 * time.Millisecond
	longestTimeout    = time.Hour
	longestRetryAfter = 7 * 24 * time.Hour
)

// PosterConfig of a Poster. The zero PosterConfig is a good one.
type PosterConfig struct {
	// Timeout bounds an attempt, from the lookup of the name to the end of the answer. Default DefaultTimeout, at most 1 h.
	Timeout time.Duration
	// ConnectTimeout bounds connecting, and the handshake of TLS. Default DefaultConnectTimeout, at most 1 h.
	ConnectTimeout time.Duration
	// UnknownOnTimeout makes an attempt outbox.Unknown whose request was written and whose answer did not come, for lack of time or since the connection
	// broke: the receiver may have acted. Then the kind should have a Reconcile, without which such messages are parked. Default: it is tried
	// again, since a receiver tells a repetition by its webhook-id.
	UnknownOnTimeout bool
	// NoConnection is what an attempt means that found no connection. Default outbox.VerdictUnavailable, which spends no attempt and holds the message's lane
	// back, with one probe at a time. That is right where a lane has one endpoint, by a target or a tenant of its own. Where endpoints share a lane, one that
	// is down would hold the others up: there it should be outbox.VerdictFailed.
	NoConnection outbox.Verdict
	// Statuses change what an answer means, by status, or for a whole class by its first digit (4 is each 4xx without an entry or default of its own):
	// outbox.VerdictDelivered, VerdictFailed (try again), VerdictPermanent, VerdictMoot, VerdictUnknown or VerdictUnavailable. Default: 2xx is
	// delivered, 410 moot, 429 failed, other 4xx permanent, and all else failed.
	Statuses map[int]outbox.Verdict
	// Gone is called when an endpoint answers 410, to disable it. Its error goes into the reason of the message, and the next 410 calls it again.
	Gone func(context.Context, outbox.Message, Endpoint) error
	// MaxRetryAfter bounds what a Retry-After may ask for. A 429 or 503 to be tried again with a Retry-After is an outbox.Snooze, which the consumer's
	// Policy.MaxSnooze must allow, and caps; else the policy's delay holds. Default DefaultMaxRetryAfter, at most 7 days.
	MaxRetryAfter time.Duration

	// Allow opens addresses that are refused: all that are not public, such as those of private networks. Default: none.
	Allow []netip.Prefix
	// HTTPSOnly refuses endpoints of http.
	HTTPSOnly bool
	// Proxy is as that of http.Transport. The proxy's address must be public or in Allow, and only the proxy can judge where it connects to. Default: none,
	// not that of the environment either.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is the client's, for a private authority or a certificate of its own.
	TLS *tls.Config
	// Resolver looks names up. Default net.DefaultResolver.
	Resolver *net.Resolver

	// ID makes the webhook-id of a message, which must be the same whenever it is sent, and fit for Sign. Default MessageID.
	ID func(outbox.Message) string
}

// MessageID is the id of a message: "msg_" and a digest of its tenant, consumer and key, which tells nothing of them. It is the same across attempts, replays and
// restored databases.
func MessageID(m outbox.Message) string {
	digest := ledger.DigestOf([]byte(m.Tenant), []byte(m.Consumer), []byte(m.Key))
	return "msg_" + hex.EncodeToString(digest[:16])
}

// A Poster posts messages as webhooks. It keeps idle connections and uses them again; its methods may be called from several goroutines at once.
type Poster struct {
	where     EndpointFunc
	config    PosterConfig
	transport *http.Transport
}

// NewPoster makes a Poster, reporting every problem of the config at once as outbox.ErrInvalid.
func NewPoster(where EndpointFunc, config PosterConfig) (*Poster, error) {
	var found refusal.Problems
	if where == nil {
		found.Add("where", "is nil")
	}
	config = config.withDefaults()
	config.check(&found)
	if err := found.Err(); err != nil {
		return nil, failed("new", err)
	}
	return &Poster{where, config, config.transport()}, nil
}

// Check finds what Do would refuse about an endpoint, for whoever registers one or starts with one: what Endpoint.Check finds, http where only https may be,
// and, as ErrRefusedAddress, a host that is written as an address and may not be connected to. It resolves no name.
func (p *Poster) Check(endpoint Endpoint) error {
	u, err := p.check(endpoint)
	if err != nil {
		return failed("endpoint", err)
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && p.config.Proxy == nil {
		return failed("endpoint", guard{p.config.Allow}.check(addr))
	}
	return nil
}

// check gives the endpoint's URL if nothing is wrong.
func (p *Poster) check(endpoint Endpoint) (*url.URL, error) {
	var found refusal.Problems
	u := endpoint.check(&found)
	if u != nil && p.config.HTTPSOnly && u.Scheme != "https" {
		found.Add("URL", "is not https")
	}
	return u, found.Err()
}

// CloseIdleConnections closes what connections are not in use.
func (p *Poster) CloseIdleConnections() { p.transport.CloseIdleConnections() }

func (c PosterConfig) withDefaults() PosterConfig {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, DefaultConnectTimeout)
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, DefaultMaxRetryAfter)
	c.NoConnection = cmp.Or(c.NoConnection, outbox.VerdictUnavailable)
	c.Statuses, c.Allow = maps.Clone(c.Statuses), slices.Clone(c.Allow)
	if c.ID == nil {
		c.ID = MessageID
	}
	return c
}

func (c PosterConfig) check(found *refusal.Problems) {
	found.Lasting("Timeout", c.Timeout, shortestTimeout, longestTimeout)
	found.Lasting("ConnectTimeout", c.ConnectTimeout, shortestTimeout, longestTimeout)
	found.Lasting("MaxRetryAfter", c.MaxRetryAfter, time.Second, longestRetryAfter)
	if marks[c.NoConnection] == nil {
		found.Addf("NoConnection", "is %v, which is no failure", c.NoConnection)
	}
	for status, verdict := range c.Statuses {
		if (status < 1 || status > 5) && (status < 100 || status > 599) {
			found.Addf("Statuses", "has %d, which is neither a status nor the digit of a class", status)
		}
		if marks[verdict] == nil && verdict != outbox.VerdictDelivered {
			found.Addf("Statuses", "makes %d %v, which is no end of a request", status, verdict)
		}
	}
	for _, prefix := range c.Allow {
		if !prefix.IsValid() || prefix.Addr().Is4In6() {
			found.Add("Allow", "has a prefix that is none, or one of IPv4 written as IPv6")
		}
	}
}

// transport makes the connections. A RoundTripper follows no redirect and keeps no cookie.
func (c PosterConfig) transport() *http.Transport {
	const idle = 16 // of one host: the slots of a sender
	dialer := net.Dialer{Timeout: c.ConnectTimeout, Resolver: c.Resolver, ControlContext: guard{c.Allow}.control}
	return &http.Transport{
		Proxy:                  c.Proxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        c.TLS.Clone(),
		TLSHandshakeTimeout:    c.ConnectTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second}, // a dead connection would fail one attempt after another
		DisableCompression:     true,
		MaxIdleConns:           16 * idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
