package outbox

import (
	"slices"
)

// A Scope says whose messages a call may touch. It is enforced in the database, at the lease, at the settle and in every operator call.
// The zero Scope is the tenant "" alone, which is right for a service without tenants.
type Scope struct {
	all     bool
	tenants []string // nil: the tenant "" alone
}

// AllTenants is the scope of everybody.
var AllTenants = Scope{all: true}

// Tenants is the scope of exactly these tenants. Of no tenant at all it is refused by every call, so that an empty list from a request
// never widens to somebody's messages.
func Tenants(names ...string) Scope {
	tenants := append([]string{}, names...)
	slices.Sort(tenants)
	return Scope{tenants: slices.Compact(tenants)}
}

// Includes says whether the scope covers a tenant.
func (s Scope) Includes(tenant string) bool {
	return s.all || slices.Contains(s.Names(), tenant)
}

// All says whether the scope is AllTenants.
func (s Scope) All() bool { return s.all }

// Names are the tenants that statements compare with; empty for all.
func (s Scope) Names() []string {
	switch {
	case s.all:
		return []string{}
	case s.tenants == nil:
		return []string{""}
	default:
		return s.tenants
	}
}

// Check is the error of a call with this scope; nil when it is one to call with.
func (s Scope) Check() error {
	var found problems
	s.check(&found)
	return found.err()
}

func (s Scope) check(p *problems) {
	if s.all || s.tenants == nil {
		return
	}
	switch n := len(s.tenants); {
	case n == 0:
		p.add("Scope", "names no tenant")
	case n > maxBatch:
		p.addf("Scope", "names %d tenants, at most %d are allowed", n, maxBatch)
	}
	for _, tenant := range s.tenants {
		p.optionalName("Scope", tenant, maxName)
	}
}
