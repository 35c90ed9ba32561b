package webhook

import (
	"net/netip"
	"testing"
	"time"
)

// B30: what may be connected to, in whatever form it is written.
func TestB30Addresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "11.0.0.1": true, "100.63.255.255": true, "100.128.0.0": true, "169.253.255.255": true, "172.15.255.255": true, "172.32.0.0": true,
		"192.167.255.255": true, "192.169.0.0": true, "198.20.0.0": true, "168.63.129.15": true, "168.63.129.17": true, "223.255.255.255": true,
		"2606:4700::1111": true, "2a00:1450::1": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true, "2001:200::1": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.0": false, "100.127.255.255": false, "127.0.0.1": false, "127.255.255.255": false,
		"168.63.129.16": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "192.0.0.192": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false,
		"255.255.255.255": false,
		"::":              false, "::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:0:127.0.0.1": false, "64:ff9b::7f00:1": false,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b:1::808:808": false, "100::1": false, "2001::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "3fff::1": false,
		"5f00::1": false, "fc00::1": false, "fd00:ec2::254": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false,
	} {
		if got := (guard{}).admits(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: admitted %t", text, got)
		}
	}
	opened := guard{allow: prefixes("10.1.0.0/16", "fe80::/64")}
	for text, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "64:ff9b::a01:203": false, "fe80::1%eth0": true, "1.1.1.1": true, "::1": false,
	} {
		if got := opened.admits(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s, with some opened: admitted %t", text, got)
		}
	}
	if err := (guard{}).control(t.Context(), "tcp", "nonsense", nil); err == nil {
		t.Error("what is no address is admitted")
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "120": 2 * time.Minute, "-1": 0, "1.5": 0, "soon": 0, " 1": 0, "99999999999999999999999": 1 << 31 * time.Second,
		"Mon, 30 Nov 2026 12:01:00 GMT": time.Minute, "Monday, 30-Nov-26 12:01:00 GMT": time.Minute, "Mon Nov 30 12:01:00 2026": time.Minute,
		"Mon, 30 Nov 2026 11:59:00 GMT": 0, "Mon, 30 Nov 2026 12:01:00 CET": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Mon, 30 Nov 2026 12:01:00 GMT")
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, text string) {
		if got := retryAfter(text, time.Now()); got < 0 {
			t.Errorf("%q: %v", text, got)
		}
	})
}

// No proxy of the environment comes between the guard and the target.
func TestNoProxyByDefault(t *testing.T) {
	t.Parallel()
	if (PosterConfig{}).withDefaults().transport().Proxy != nil {
		t.Error("a proxy")
	}
}
