package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/webhook"
)

func TestBadConfig(t *testing.T) {
	t.Parallel()
	_, err := webhook.NewPoster(nil, webhook.PosterConfig{
		Timeout: -1, ConnectTimeout: 2 * time.Hour, MaxRetryAfter: time.Millisecond, Allow: []netip.Prefix{{}},
		NoConnection: outbox.VerdictDelivered, Statuses: map[int]outbox.Verdict{600: outbox.VerdictFailed, 500: outbox.VerdictSnoozed},
	})
	refused(t, "all", err, "where", "Timeout", "ConnectTimeout", "MaxRetryAfter", "NoConnection", "Allow", "has 600, which", "makes 500 snoozed,")
	_, err = webhook.NewPoster(nil, webhook.PosterConfig{Allow: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}})
	refused(t, "mapped", err, "Allow")

	secrets := []webhook.Secret{webhook.NewSecret()}
	for row, url := range map[string]string{
		"none": "", "no scheme": "example.com/x", "file": "file:///etc/passwd", "ftp": "ftp://example.com", "gopher": "gopher://example.com", "no host": "https:///x", "opaque": "https:example.com",
		"port only": "http://:80", "user": "https://canary@example.com", "password": "https://canary:canary@example.com", "port": "http://example.com:0", "large port": "http://example.com:65536",
		"no url": "https://canary example.com", "control": "https://canary\n",
	} {
		err := webhook.Endpoint{URL: url, Secrets: secrets}.Check()
		refused(t, row, err, "URL")
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s is told: %v", row, err)
		}
		where := func(context.Context, outbox.Message) (webhook.Endpoint, error) {
			return webhook.Endpoint{URL: url, Secrets: secrets}, nil
		}
		p, err := webhook.NewPoster(where, webhook.PosterConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Do(t.Context(), message); verdict(err) != outbox.VerdictPermanent || !errors.Is(err, outbox.ErrInvalid) {
			t.Errorf("%s: %v", row, err)
		}
	}
	for _, good := range []string{"http://example.com", "HTTPS://example.com:8443/x?y=z#f", "https://[2606:4700::1111]/", "https://bücher.example"} {
		if err := (webhook.Endpoint{URL: good, Secrets: secrets}).Check(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for name, value := range map[string]string{"Webhook-Id": "x", "host": "x", "content-length": "1", "a b": "x", "": "x", "X-A": "a\nb", "Transfer-Encoding": "chunked"} {
		_, err := webhook.To(webhook.Endpoint{URL: "https://example.com", Secrets: secrets, Header: http.Header{name: {value}}})
		refused(t, name, err, "Header")
	}
	_, err = webhook.To(webhook.Endpoint{URL: "https://example.com"})
	refused(t, "unsigned", err, "Secrets")

	err = poster(t, "http://127.0.0.1:1", webhook.PosterConfig{HTTPSOnly: true}).Do(t.Context(), message)
	if verdict(err) != outbox.VerdictPermanent || !strings.Contains(err.Error(), "URL is not https") {
		t.Errorf("http: %v", err)
	}
	err = poster(t, "http://127.0.0.1:1", webhook.PosterConfig{ID: func(outbox.Message) string { return "a.b" }}).Do(t.Context(), message)
	if verdict(err) != outbox.VerdictPermanent || !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("id: %v", err)
	}
	disabled := fmt.Errorf("disabled: %w", outbox.Moot(errors.New("by its owner")))
	p, err := webhook.NewPoster(func(context.Context, outbox.Message) (webhook.Endpoint, error) { return webhook.Endpoint{}, disabled }, webhook.PosterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Do(t.Context(), message); err != disabled {
		t.Errorf("no endpoint: %v", err)
	}
}
