package peers

import (
	"errors"
	"os"
	"testing"

	"github.com/fencepost-go/fencepost/bench/contest"
)

func TestWithoutNpm(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("PATH", cache)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	if err := Graphile().Open(t.Context(), "postgres://"); !errors.Is(err, contest.ErrAbsent) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(cache + "/fencepost-bench"); err == nil && len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
}
