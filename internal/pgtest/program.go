package pgtest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgserver"
)

// Program returns the first of the names, or paths, that is there. As root on a Debian it installs the package first where none is; else the test
// fails and says what to do.
func Program(t testing.TB, debian, advice string, names ...string) string {
	t.Helper()
	find := func() string {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	}
	path := find()
	if path == "" && pgserver.CanInstall() {
		if err := pgserver.Install(t.Context(), debian); err != nil {
			t.Fatal("pgtest: ", err)
		}
		path = find()
	}
	if path == "" {
		t.Fatalf("found no %s; install it: \"apt-get install %s\" on Debian and Ubuntu, %s", filepath.Base(names[0]), debian, advice)
	}
	return path
}
