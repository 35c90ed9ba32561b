package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// claimWarning is how long a claim is over before it is worth a warning; lapsedClaims is how many are listed.
const (
	claimWarning = time.Hour
	lapsedClaims = 1000
)

// events looks at what keeps events from being read, and at who has yet to read them.
func (d *doctor) events(ctx context.Context) ([]finding, error) {
	s, err := readStream(ctx, d.store)
	if err != nil {
		return nil, err
	}
	at, says := s.says()
	events := found("events", at, "%s", says)
	switch {
	case at == levelOK || s.Restored:
	case s.Holder != "":
		held := time.Duration(s.Held) * time.Microsecond
		events.Details = []string{fmt.Sprintf("it is %s, open for %s: end it (pg_terminate_backend; ROLLBACK PREPARED)", s.Holder, age(held))}
	default:
		events.Details = []string{"the role may not see which: grant it pg_read_all_stats; it is the oldest backend_xid in pg_stat_activity, of any database"}
	}
	return []finding{events, s.late()}, nil
}

// late looks for readers that missed events, or have not come for long.
func (s stream) late() finding {
	worst, details := levelOK, []string{}
	for _, r := range s.readers {
		at, stands := readerStands(r)
		switch {
		case r.Standing == db.StandingExpired:
			stands = "what follows it was purged"
		case r.Standing != db.StandingGood:
			stands = "the stream has no such place (restored from a dump, or another's)"
		default:
			stands = "behind by " + stands
		}
		if at != levelOK {
			worst, details = worse(worst, at), append(details, fmt.Sprintf("%s at position %d: %s", r.Name, r.Position, stands))
		}
	}
	if len(details) == 0 {
		return found("readers", levelOK, "none is behind by %v", readerWarning)
	}
	return found("readers", worst, "%s cannot go on or are far behind, and retention waits for them: let them run, begin anew, or forget them (fencepost events readers)",
		plural(len(details), "reader")).with(some(details))
}

// claims looks for keys of the ledger whose holder died.
func (d *doctor) claims(ctx context.Context) ([]finding, error) {
	rows, err := d.store.ListLapsedClaims(ctx, db.ListLapsedClaimsParams{Age: claimWarning.Microseconds(), MaxRows: lapsedClaims})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return []finding{found("claims", levelOK, "none is over for %v", claimWarning)}, nil
	}
	details := make([]string, len(rows))
	for i, row := range rows {
		details[i] = fmt.Sprintf("%s %s of tenant %s, over for %s", row.Scope, row.Key, orDash(row.Tenant), age(row.Now.Sub(row.HeldUntil)))
	}
	count := plural(len(rows), "claim")
	if len(rows) == lapsedClaims {
		count += " or more"
	}
	return []finding{found("claims", levelWarning, "%s: the holder's time ran out over %v ago, and nobody took the key over (ledger.Take)", count, claimWarning).
		with(some(details))}, nil
}
