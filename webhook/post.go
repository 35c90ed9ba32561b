package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/outbox"
)

// errTimeout is the cause of a request's context whose time is over.
var errTimeout = errors.New("no answer in time")

const (
	// bodyTime is how long the body of an answer may take once its status is there: it only explains.
	bodyTime = 2 * time.Second
	// drained is what is read of a body to its end so that the connection can be used again.
	drained = 64 << 10
)

// Do posts a message's payload, as a handler of a sender:
//
//   - what an answer means says PosterConfig.Statuses; its error is a *StatusError,
//   - no connection is outbox.Unavailable, which spends no attempt, or what PosterConfig.NoConnection says,
//   - no answer to a request that was sent, or in part, is an ordinary failure, or outbox.Unknown if PosterConfig.UnknownOnTimeout says so,
//   - an address that is refused (ErrRefusedAddress), and an endpoint or id that is invalid (outbox.ErrInvalid), are outbox.Permanent.
//
// No error has more of the endpoint than its scheme and host.
func (p *Poster) Do(ctx context.Context, m outbox.Message) error {
	endpoint, err := p.where(ctx, m)
	if err != nil {
		return err
	}
	request, err := p.request(m, endpoint)
	if err != nil {
		return outbox.Permanent(failed("post", err))
	}
	bounded, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, errTimeout)
	defer cancel()
	var progress progress
	response, err := p.transport.RoundTrip(request.WithContext(httptrace.WithClientTrace(bounded, progress.trace())))
	if err != nil {
		return p.unanswered(ctx, fmt.Errorf("webhook: post to %v: %w", endpoint, err), &progress)
	}
	if response.StatusCode == http.StatusSwitchingProtocols { // its body is the connection, which no context ends any more
		response.Body.Close()
		response.Body = http.NoBody
	}
	defer response.Body.Close()
	defer time.AfterFunc(bodyTime, cancel).Stop()
	return p.answered(ctx, m, endpoint, response)
}

func (p *Poster) request(m outbox.Message, endpoint Endpoint) (*http.Request, error) {
	u, err := p.check(endpoint)
	if err != nil {
		return nil, err
	}
	signed, err := Sign(p.config.ID(m), time.Now(), m.Payload, endpoint.Secrets...)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, hostOf(u), bytes.NewReader(m.Payload))
	if err != nil {
		return nil, err
	}
	request.URL = u // the error of a whole one would have told it
	request.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"fencepost-webhook"}}
	for name, values := range endpoint.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	maps.Copy(request.Header, signed)
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if _, ok := request.Header[name]; ok {
			request.GetBody = nil // else the transport sends such a request again by itself, although it was written, and progress begins anew
		}
	}
	return request, nil
}

// A progress is how far a request came. The transport tries another connection only where the one before took nothing.
type progress struct{ connected, wrote atomic.Bool }

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			p.connected.Store(false)
			p.wrote.Store(false)
		},
		GotConn:      func(httptrace.GotConnInfo) { p.connected.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) { p.wrote.Store(info.Err == nil) },
	}
}

// unanswered is the outcome of a request without an answer.
func (p *Poster) unanswered(ctx context.Context, err error, progress *progress) error {
	switch {
	case errors.Is(err, ErrRefusedAddress):
		return outbox.Permanent(err)
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return err // the sender ended it, and knows what for
	case !progress.connected.Load():
		return marks[p.config.NoConnection](err)
	case progress.wrote.Load() && p.config.UnknownOnTimeout:
		return outbox.Unknown(err)
	}
	return err
}

// answered is the outcome of an answer.
func (p *Poster) answered(ctx context.Context, m outbox.Message, endpoint Endpoint, response *http.Response) error {
	verdict := p.config.verdict(response.StatusCode)
	body, _ := io.ReadAll(io.LimitReader(response.Body, bounds.Reason)) // it may break off
	_, _ = io.CopyN(io.Discard, response.Body, drained)
	if verdict == outbox.VerdictDelivered {
		return nil
	}
	status := &StatusError{Status: response.StatusCode, Body: string(body)}
	if verdict == outbox.VerdictFailed && saysWhen(status.Status) {
		status.RetryAfter = min(retryAfter(response.Header.Get("Retry-After"), time.Now()), p.config.MaxRetryAfter)
	}
	var err error = status
	if status.Status == http.StatusGone && p.config.Gone != nil {
		if problem := p.config.Gone(ctx, m, endpoint); problem != nil {
			err = fmt.Errorf("%w; and the endpoint was not disabled: %v", status, problem)
		}
	}
	return marks[verdict](err)
}
