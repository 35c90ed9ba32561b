package outbox

import (
	"cmp"
	"slices"
)

// places are those of a whole call: 0…n-1.
func places(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// batches gives some places of a call in the form that statements take: each batch in rising order of id, no id twice, at most 1,000. An
// id that occurs again (two leases of one message in one call) goes to a later batch.
func batches(places []int, id func(place int) int64) [][]int {
	places = slices.Clone(places)
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(id(a), id(b)) })
	var rounds [][]int
	round := 0
	for i, place := range places {
		if i > 0 && id(places[i-1]) == id(place) {
			round++
		} else {
			round = 0
		}
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], place)
	}
	var all [][]int
	for _, places := range rounds {
		all = slices.AppendSeq(all, slices.Chunk(places, maxBatch))
	}
	return all
}
