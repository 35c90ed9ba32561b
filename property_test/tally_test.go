package property_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	leastSteps = 5_000   // of a run that is not brief
	fullSteps  = 200_000 // from here everything must have happened fullCount times
	fullCount  = 20
)

// A tally counts what the operations of a run came to.
type tally struct {
	savepoints bool // the driver has them
	steps      int
	counts     map[string]map[string]int
}

func newTally(savepoints bool) *tally {
	return &tally{savepoints: savepoints, counts: map[string]map[string]int{}}
}

func (c *tally) count(action, result string) {
	if c.counts[action] == nil {
		c.counts[action] = map[string]int{}
	}
	c.counts[action][result]++
}

// brief says that fewer checks were asked for than it takes for all that is foreseen to happen.
func brief() bool {
	return testing.Short() || flag.Lookup("rapid.checks").Value.(flag.Getter).Get().(int) < 100
}

// wantsMore says whether a run goes on. What is rare may take a while, but not for ever.
func (c *tally) wantsMore() bool {
	if brief() {
		return c.steps == 0
	}
	return c.steps < leastSteps || c.steps < 10*leastSteps && len(c.missing(1)) > 0
}

// missing is what happened less often than it should.
func (c *tally) missing(least int) []string {
	var missing []string
	for action, results := range foreseen {
		for _, result := range results {
			if n := c.counts[action][result]; n < least && (c.savepoints || result != savepoint) {
				missing = append(missing, fmt.Sprintf("%s came to %q %d times", action, result, n))
			}
		}
	}
	return missing
}

// report prints the table and holds it against the one below: each pair there must have happened, and nothing else.
func (c *tally) report(t *testing.T) {
	var table strings.Builder
	for _, action := range slices.Sorted(maps.Keys(c.counts)) {
		for _, result := range slices.Sorted(maps.Keys(c.counts[action])) {
			fmt.Fprintf(&table, "\n%-26s %-24s %8d", action, result, c.counts[action][result])
			if !slices.Contains(foreseen[action], result) {
				t.Errorf("%s came to %q, which the table does not foresee", action, result)
			}
		}
	}
	t.Logf("%d steps%s", c.steps, &table)
	switch {
	case brief():
	case c.steps < fullSteps:
		for _, missing := range c.missing(1) {
			t.Errorf("%s in %d steps", missing, c.steps)
		}
	default:
		for _, missing := range c.missing(fullCount) {
			t.Errorf("%s in %d steps", missing, c.steps)
		}
	}
}

// foreseen is all that the operations of the machine can come to.
var foreseen = map[string][]string{
	"enqueue":                   {"recorded", "duplicate", "conflicted", "suppressed", "invalid", "committed", "rolled back"},
	"enqueue many":              {"recorded", "duplicate", "conflicted", "invalid", "committed", "rolled back", savepoint},
	"enqueue handed off":        {"recorded", "duplicate", "conflicted", "committed", "rolled back", savepoint, "confirmed", "not there"},
	"late transaction":          {"recorded", "duplicate", "conflicted", "committed", "rolled back"},
	"lease":                     {"granted", "refused", "buried: attempts", "buried: exhausted", "buried: age", "nothing", "invalid"},
	"lease lanes":               {"granted", "refused", "buried: attempts", "buried: exhausted", "buried: age", "nothing", "invalid"},
	"lease successors":          {"granted", "nothing", "invalid"},
	"raw lease":                 {"granted", "nothing"},
	"raw token":                 {"short", "long", "none", "free", "foreign"},
	"renew":                     {"renewed", "lane paused", "lease lost", "message cancelled", "invalid"},
	"release":                   {"released", "stale", "invalid"},
	"settle":                    {"invalid"},
	"settle delivered":          {"acknowledged", "acknowledged late", "dropped", "stale_lease", "recorded before"},
	"settle failed":             {"retry_scheduled", "dead: attempts", "dead: age", "stale_lease", "recorded before"},
	"settle permanent":          {"dead: permanent", "stale_lease", "recorded before"},
	"settle moot":               {"dead: moot", "stale_lease", "recorded before"},
	"settle unknown":            {"parked", "retry_scheduled", "dead: age", "stale_lease", "recorded before"},
	"settle unavailable":        {"retry_scheduled", "dead: age", "stale_lease", "recorded before"},
	"settle snoozed":            {"retry_scheduled", "dead: attempts", "dead: age", "stale_lease", "recorded before"},
	"crash":                     {"with leases", "without"},
	"time":                      {"passes", "goes back"},
	"cancel":                    {"done", "not_open", "not_found", "invalid"},
	"replay":                    {"done", "not_dead", "invalid"},
	"replay with reset":         {"done", "not_dead"},
	"replay matching":           {"done", "nothing", "dry run", "invalid"},
	"resolve":                   {"invalid"},
	"resolve as delivered":      {"done", "not_parked", "not_found"},
	"resolve as dead":           {"done", "not_parked", "not_found"},
	"resolve as dead, blocking": {"done", "not_parked", "not_found"},
	"resolve as retry":          {"done", "not_parked", "not_found"},
	"pause":                     {"paused", "replaced", "invalid"},
	"resume":                    {"resumed", "nothing", "invalid"},
	"release worker":            {"released", "nothing", "invalid"},
	"unblock":                   {"freed", "nothing", "invalid"},
	"purge":                     {"invalid"},
	"purge delivered":           {"removed", "nothing"},
	"purge dead":                {"removed", "nothing"},
	"purge cancelled":           {"removed", "nothing"},
	"purge expired":             {"removed", "nothing"},
	"expire":                    {"expired", "nothing", "invalid"},
	"worker":                    {"touched", "forgotten", "kept", "invalid"},
	"list":                      {"found", "nothing", "invalid"},
	"show":                      {"found", "not found", "invalid"},
	"stats":                     {"counted", "invalid"},
}

// savepoint is what a store without savepoints can not come to.
const savepoint = "rolled back to a savepoint"
