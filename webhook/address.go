package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// A guard decides about addresses when they are connected to: after a name was resolved, so that what it resolves to counts, each time, and in whatever form an
// address was written.
type guard struct{ allow []netip.Prefix }

// control is a net.Dialer.ControlContext.
func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrRefusedAddress, err)
	}
	return g.check(at.Addr())
}

func (g guard) check(addr netip.Addr) error {
	if !g.admits(addr) {
		return fmt.Errorf("%w: %s is not public, and no network that is allowed has it", ErrRefusedAddress, addr)
	}
	return nil
}

func (g guard) admits(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(addr) }) || public(addr)
}

var (
	// Of IPv4 what IANA's registry of special-purpose addresses calls not globally reachable, multicast, what is reserved, and the one address beside
	// these at which a cloud serves its machines from within (Azure's WireServer).
	special4 = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	)
	// Of IPv6 only global unicast is public, and of that not: protocol assignments with Teredo, documentation, and 6to4, which holds any IPv4 address.
	unicast6 = netip.MustParsePrefix("2000::/3")
	special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	// NAT64 translates to the IPv4 address in the last 32 bits.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// public says whether an address is one of the internet's.
func public(addr netip.Addr) bool {
	within := func(p netip.Prefix) bool { return p.Contains(addr) }
	switch {
	case addr.Is4():
		return !slices.ContainsFunc(special4, within)
	case nat64.Contains(addr):
		bits := addr.As16()
		return public(netip.AddrFrom4([4]byte(bits[12:])))
	default:
		return unicast6.Contains(addr) && !slices.ContainsFunc(special6, within)
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}
