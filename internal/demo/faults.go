package demo

import (
	"math/rand/v2"
	"net/http"
)

// faults are what goes wrong at the receiver. The same seed gives the same faults.
type faults struct {
	refused string         // this key is refused for good, until somebody repairs the receiver
	busy    map[string]int // so many calls for a key are answered with an error
	slow    map[string]int // so many calls for a key are left hanging, and nothing is performed
	fatal   int            // the call that performs this many effects is not answered, and its caller is killed
}

func newFaults(seed uint64, orders int) faults {
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func() string {
		kinds := []string{kindCharge, kindMail}
		return key(1+random.IntN(orders), kinds[random.IntN(len(kinds))])
	}
	f := faults{refused: key(1+random.IntN(orders), kindCharge), busy: map[string]int{}, slow: map[string]int{}, fatal: orders / 4}
	for range orders / 10 {
		f.busy[pick()] = 1 + random.IntN(2)
	}
	for range 10 {
		f.slow[pick()] = 1
	}
	return f
}

// strike says whether a call fails, and how.
func (f faults) strike(key string) (status int, failed bool) {
	switch {
	case key == f.refused:
		return http.StatusUnprocessableEntity, true
	case f.busy[key] > 0:
		f.busy[key]--
		return http.StatusServiceUnavailable, true
	case f.slow[key] > 0:
		f.slow[key]--
		return noAnswer, true
	default:
		return http.StatusOK, false
	}
}
