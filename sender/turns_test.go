package sender

import (
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

// Lanes whose leases differ in length take different passes, and nobody waits for ever for one of his length.
func TestLengthsOfLeasesTakeTurns(t *testing.T) {
	t.Parallel()
	lane := func(tenant, kind string, priority int16) outbox.Lane {
		return outbox.Lane{Kind: kind, Tenant: tenant, Priority: priority}
	}
	for name, lanes := range map[string][]outbox.Lane{
		"one between others":     {lane("a", "charge", 0), lane("b", "slow", 0), lane("c", "charge", 0)},
		"a second kind":          {lane("a", "charge", 0), lane("b", "charge", 0), lane("b", "slow", 0)},
		"of a lower priority":    {lane("a", "charge", 0), lane("b", "charge", 9), lane("b", "slow", 0)},
		"each tenant's own":      {lane("a", "charge", 0), lane("b", "slow", 0)},
		"many before one":        {lane("a", "charge", 0), lane("b", "charge", 0), lane("c", "charge", 0), lane("d", "slow", 0)},
		"alternating":            {lane("a", "charge", 0), lane("b", "slow", 0), lane("c", "charge", 0), lane("d", "slow", 0)},
		"two kinds, two tenants": {lane("a", "charge", 0), lane("a", "slow", 0), lane("b", "charge", 0), lane("b", "slow", 0)},
	} {
		for _, room := range []int{1, 2, 3, 16} {
			due := map[outbox.Lane]int{}
			for _, l := range lanes {
				due[l] = 1_000_000
			}
			b := newBacklog(t, due)
			const passes = 400
			for range passes {
				b.pass(room)
			}
			for _, l := range lanes {
				// One turn in eight is the least that a lane of a lower priority gets.
				if got, least := b.leased[l], passes*room/len(lanes)/16; got < least {
					t.Errorf("%s, room for %d: %+v had %d, at least %d are fair; all: %v", name, room, l, got, least, b.leased)
				}
			}
		}
	}
}
