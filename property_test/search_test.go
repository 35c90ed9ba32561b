package property_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The search walks every state that the model can come to with two messages, two workers, an operator, a janitor and a clock that moves a
// unit at a time, where each may act next in every state and a worker may crash after every step. It looks for what no run of a real system
// would come upon in years, and finds the shortest way there.
//
// FENCEPOST_FULL=1 walks all of it, some 1.5 million states; without it each variant stops at 40,000.
func TestSearch(t *testing.T) {
	t.Parallel()
	limit := 40_000
	if os.Getenv("FENCEPOST_FULL") != "" {
		limit = 0
	}
	for _, v := range []variant{
		{name: "shared order key", order: [2]string{"o", "o"}},
		{name: "shared order key, dead head blocks", order: [2]string{"o", "o"}, block: true},
		{name: "one order key, late deliveries count", order: [2]string{"", "o"}, late: true},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := newSearch(v)
			if err := s.run(limit); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states, %d transitions, complete: %t", len(s.seen), s.transitions, s.complete)
		})
	}
}

// A variant is a policy, and which messages share an order key.
type variant struct {
	name        string
	order       [2]string
	block, late bool
}

// A search is a walk in breadth, so that what it finds is found on a shortest way.
type search struct {
	moves       []move
	universe    *universe
	seen        []visit // in the order of discovery
	known       map[code]struct{}
	transitions int
	complete    bool
}

// A visit is a state with the way to it.
type visit struct {
	code
	from int32
	by   uint8 // the move
}

func newSearch(v variant) *search {
	u := newUniverse(v)
	start := newWorld(u)
	first := start.code()
	return &search{
		moves:    u.moves(),
		universe: u,
		seen:     []visit{{code: first, from: -1}},
		known:    map[code]struct{}{first: {}},
	}
}

// run looks at each state once, until there is no new one or limit is reached.
func (s *search) run(limit int) error {
	before, after, scratch := newWorld(s.universe), newWorld(s.universe), newWorld(s.universe)
	for at := 0; at < len(s.seen); at++ {
		if limit > 0 && len(s.seen) >= limit {
			return nil
		}
		before.decode(s.seen[at].code)
		if problem := before.check(scratch); problem != "" {
			return s.violation(at, nil, problem)
		}
		for by := range s.moves {
			mv := &s.moves[by]
			after.copy(before)
			if !mv.do(after) {
				continue // not possible here
			}
			s.transitions++
			if problem := mv.check(before, after); problem != "" {
				return s.violation(at, mv, problem)
			}
			c := after.code()
			if _, ok := s.known[c]; !ok {
				s.known[c] = struct{}{}
				s.seen = append(s.seen, visit{code: c, from: int32(at), by: uint8(by)})
			}
		}
	}
	s.complete = true
	return nil
}

// violation tells the way to a broken invariant.
func (s *search) violation(at int, last *move, problem string) error {
	var way []string
	if last != nil {
		way = append(way, last.name)
	}
	for ; s.seen[at].from >= 0; at = int(s.seen[at].from) {
		way = append(way, s.moves[s.seen[at].by].name)
	}
	slices.Reverse(way)
	return fmt.Errorf("%s after:\n\t%s", problem, strings.Join(way, "\n\t"))
}
