package main

import (
	"slices"

	"github.com/fencepost-go/fencepost/bench/contest"
)

const fencepost = "fencepost"

// A figure is one thing that was measured. Its name is that of the JSON, with the unit at its end; a rate is in messages a second.
type figure struct {
	name  string
	value float64
}

// A report is what came of a workload.
type report struct {
	server  string
	machine contest.Machine
	rounds  int
	about   string // the sizes, for a reader
	// compared are the figures that ratios are of: "rate" where nothing is said. The first gives "ratios", another adds its name to the key.
	compared []string
	// lessIsBetter turns the ratios over, so that above 1 is always better.
	lessIsBetter bool
	rows         []*row
}

// A row is one contender's, in one variant.
type row struct {
	peer, variant, settings string
	rounds                  [][]figure
}

func (r *report) add(peer, variant, settings string, figures ...figure) {
	at := slices.IndexFunc(r.rows, func(l *row) bool { return l.peer == peer && l.variant == variant })
	if at < 0 {
		at = len(r.rows)
		r.rows = append(r.rows, &row{peer: peer, variant: variant, settings: settings})
	}
	r.rows[at].rounds = append(r.rows[at].rounds, figures)
}

// find is the row of a peer in a variant, or in its only one or first.
func (r *report) find(peer, variant string) *row {
	var found *row
	for _, l := range r.rows {
		if l.peer == peer && (found == nil || l.variant == variant) {
			found = l
		}
	}
	return found
}

// values are one figure's, of all rounds.
func (l *row) values(name string) []float64 {
	var values []float64
	for _, figures := range l.rounds {
		for _, f := range figures {
			if f.name == name {
				values = append(values, f.value)
			}
		}
	}
	return values
}

// names are those of the figures, in order.
func (l *row) names() (names []string) {
	for _, f := range l.rounds[0] {
		names = append(names, f.name)
	}
	return names
}

// ratio is how many times better a row is than another by one figure: the median of each round's pair for itself, since a machine is never quiet, and its
// moods pass. It is 0 where there is no such pair.
func (r *report) ratio(one, other *row, name string) float64 {
	if r.lessIsBetter {
		one, other = other, one
	}
	above, below := one.values(name), other.values(name)
	var ratios []float64
	for i := range min(len(above), len(below)) {
		if below[i] != 0 { // else nothing can be said
			ratios = append(ratios, above[i]/below[i])
		}
	}
	return median(ratios)
}

// ratios are a row's against itself in the first variant, by that one's name, and of fencepost's against every other peer in the same variant.
func (r *report) ratios(l *row) map[string]float64 {
	ratios := map[string]float64{}
	add := func(name string, other *row) {
		for i, figure := range r.keys() {
			key := name
			if i > 0 {
				key += " " + figure
			}
			if ratio := r.ratio(l, other, figure); ratio > 0 {
				ratios[key] = ratio
			}
		}
	}
	if first := r.find(l.peer, ""); first != l && first.variant != "" {
		add(first.variant, first)
	}
	if l.peer == fencepost {
		for _, other := range r.rows {
			if other.peer != fencepost && r.find(other.peer, l.variant) == other {
				add(other.peer, other)
			}
		}
	}
	return ratios
}

func (r *report) keys() []string {
	if len(r.compared) == 0 {
		return []string{"rate"}
	}
	return r.compared
}

// median is the middle of some values; of none, 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is the smallest value that so many of a hundred do not exceed; values are sorted.
func percentile(sorted []float64, percent int) float64 {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
