package webhook_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/webhook"
)

// resolver answers each question for an address of IPv4 by what lookup says; without an answer there is no such name.
func resolver(lookup func(name string) []netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe() // as if by TCP: each message behind its length
		go func() {
			defer server.Close()
			for {
				size := make([]byte, 2)
				if _, err := io.ReadFull(server, size); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(size))
				if _, err := io.ReadFull(server, question); err != nil {
					return
				}
				answer := respond(question, lookup)
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// respond answers a message of DNS with one question (RFC 1035, section 4).
func respond(question []byte, lookup func(string) []netip.Addr) []byte {
	end, labels := 12, []string{}
	for question[end] != 0 {
		size := int(question[end])
		labels = append(labels, string(question[end+1:end+1+size]))
		end += 1 + size
	}
	end += 5
	kind := binary.BigEndian.Uint16(question[end-4:])
	var found []netip.Addr
	if lookup != nil {
		found = lookup(strings.ToLower(strings.Join(labels, ".")))
	}
	answer := append([]byte{}, question[:end]...)
	binary.BigEndian.PutUint16(answer[2:], 0x8180) // an answer
	clear(answer[6:12])
	if len(found) == 0 {
		answer[3] |= 3 // no such name
	}
	for _, addr := range found {
		if kind != 1 {
			continue
		}
		answer[7]++
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		answer = append(answer, addr.AsSlice()...)
	}
	return answer
}

// What resolves to an address of this network is not connected to, in whatever form it is written, and not retried.
// B30
func TestB30Dial(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the webhook arrived") })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	names := resolver(func(name string) []netip.Addr {
		if name == "inner.example" {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		return nil
	})
	six, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		six.Close()
	}
	for host, want := range map[string]outbox.Verdict{
		"127.0.0.1": outbox.VerdictPermanent, "localhost": outbox.VerdictPermanent, "0.0.0.0": outbox.VerdictPermanent, "127.8.8.8": outbox.VerdictPermanent,
		"169.254.169.254": outbox.VerdictPermanent, "10.0.0.1": outbox.VerdictPermanent, "192.168.0.1": outbox.VerdictPermanent, "172.16.0.1": outbox.VerdictPermanent,
		"100.64.0.1": outbox.VerdictPermanent, "224.0.0.1": outbox.VerdictPermanent, "255.255.255.255": outbox.VerdictPermanent,
		"[::1]": outbox.VerdictPermanent, "[::]": outbox.VerdictPermanent, "[::ffff:127.0.0.1]": outbox.VerdictPermanent, "[64:ff9b::7f00:1]": outbox.VerdictPermanent,
		"[fe80::1]": outbox.VerdictPermanent, "[fd00:ec2::254]": outbox.VerdictPermanent, "inner.example": outbox.VerdictPermanent, "INNER.example.": outbox.VerdictPermanent,
		"2130706433": outbox.VerdictUnavailable, "0x7f000001": outbox.VerdictUnavailable, "127.1": outbox.VerdictUnavailable, "0177.0.0.1": outbox.VerdictUnavailable,
	} {
		if strings.HasPrefix(host, "[") && six == nil {
			continue // it cannot be connected to anyway
		}
		p := poster(t, "http://"+host+":"+port, webhook.PosterConfig{Allow: []netip.Prefix{}, Resolver: names})
		err := p.Do(t.Context(), message)
		if verdict(err) != want || (want == outbox.VerdictPermanent) != errors.Is(err, webhook.ErrRefusedAddress) {
			t.Errorf("%s: %v, %v", host, verdict(err), err)
		}
	}
}

// A name that resolved to a public address when the endpoint was registered, and to this host when it is connected to.
// B30
func TestB30Rebinding(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the webhook arrived") })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var asked atomic.Int64
	names := resolver(func(string) []netip.Addr {
		if asked.Add(1) <= 2 { // for both families
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	})
	if at, err := names.LookupHost(t.Context(), "rebound.example"); err != nil || len(at) != 1 || at[0] != "8.8.8.8" {
		t.Fatalf("registered at %v, %v", at, err)
	}
	err := poster(t, "http://rebound.example:"+port, webhook.PosterConfig{Allow: []netip.Prefix{}, Resolver: names}).Do(t.Context(), message)
	if verdict(err) != outbox.VerdictPermanent || !errors.Is(err, webhook.ErrRefusedAddress) {
		t.Errorf("%v", err)
	}
}

// What is allowed is connected to by name too; and a proxy is asked only when it is configured, and is guarded itself.
func TestAllowAndProxy(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	here := resolver(func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} })
	if err := poster(t, "http://inner.example:"+port, webhook.PosterConfig{Resolver: here}).Do(t.Context(), message); err != nil {
		t.Errorf("allowed: %v", err)
	}
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if proxied.Add(1); r.URL.Host != "customer.example" {
			t.Errorf("asked for %v", r.URL)
		}
	}))
	defer proxy.Close()
	through := func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	if err := poster(t, "http://customer.example", webhook.PosterConfig{Proxy: through}).Do(t.Context(), message); err != nil || proxied.Load() != 1 {
		t.Errorf("through a proxy: %v", err)
	}
	err := poster(t, "http://customer.example", webhook.PosterConfig{Proxy: through, Allow: []netip.Prefix{}}).Do(t.Context(), message)
	if !errors.Is(err, webhook.ErrRefusedAddress) || proxied.Load() != 1 {
		t.Errorf("through a proxy that is not allowed: %v", err)
	}
}
