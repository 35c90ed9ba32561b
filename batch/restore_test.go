package batch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A dump that is restored has its batches as they were, and completes them.
func TestBatchesRestored(t *testing.T) {
	t.Parallel()
	if os.Getenv("FENCEPOST_TEST_DATABASE_URL") != "" {
		t.Skip("the server's own pg_dump is needed")
	}
	binaries, err := pgtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	server, err := filepath.EvalSymlinks(filepath.Join(binaries, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	dsn, into, file := pgtest.New(t), pgtest.Empty(t), filepath.Join(t.TempDir(), "dump.sql")
	r := openPgxAt(t, dsn)
	id := r.mustCreate(spec(), text(2)+"x\n", batch.Receipt{Rows: 3, Rejected: 1})
	for _, command := range [][]string{{"pg_dump", "-f", file, dsn}, {"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, into}} {
		program := filepath.Join(filepath.Dir(server), command[0])
		if _, err := os.Stat(program); err != nil {
			t.Skip(command[0] + " did not come with this server")
		}
		if problem, err := exec.CommandContext(t.Context(), program, command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program, err, problem)
		}
	}
	r = openPgxAt(t, into)
	r.stands(id, "run 1: 3 = 2 open + 0 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed")
	r.perform()
	r.stands(id, "run 1: 3 = 0 open + 2 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
	if ends := r.ends(); len(ends) != 1 {
		t.Errorf("at the end: %q", ends)
	}
}
