package pgtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgserver"
)

const (
	// hostVariable tells a test binary that it is to be the host, of the address file that the variable names.
	hostVariable = "FENCEPOST_PGTEST_HOST"

	// linger is how long an unused server waits for the next package of the run.
	linger = 5 * time.Second

	// startTimeout bounds a start, with an installation of packages before it.
	startTimeout = 5 * time.Minute

	// answerTimeout is how long a server may take to answer that it is there.
	answerTimeout = 10 * time.Second
)

// join returns the address of the shared cluster, which lives at least until leave is called or this process ends.
func join() (dsn string, leave func() error, err error) {
	// One cluster for each user and choice of binaries.
	key := sha256.Sum256([]byte(os.Getenv(pgserver.BinVariable)))
	path := filepath.Join(os.TempDir(), fmt.Sprintf("fencepost-pgtest-%d-%x", os.Getuid(), key[:4]))
	// A cluster can end between its start and our lock, if this process is very slow; hardly three times.
	for range 3 {
		file, err := lock(path, syscall.LOCK_SH)
		if err != nil {
			return "", nil, err
		}
		if dsn, ok := answering(file, answerTimeout); ok {
			return dsn, file.Close, nil
		}
		file.Close()
		if err := launch(path); err != nil {
			return "", nil, err
		}
	}
	return "", nil, errors.New("the shared server does not stay up")
}

// launch starts a host, unless another process did so while this one waited for the lock.
func launch(path string) error {
	file, err := lock(path, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, ok := answering(file, answerTimeout); ok {
		return nil
	}
	if err := startHost(path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// startHost returns once the host has written the address.
func startHost(path string) error {
	// The host looks for the binaries too, but nobody would see what it prints when it has to install them.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := pgserver.Ensure(ctx); err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	host := exec.Command(binary)
	host.Dir = "/"
	host.Env = append(os.Environ(), hostVariable+"="+path)
	host.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // to outlive an interrupted run and clean up
	output, err := host.StdoutPipe()
	if err != nil {
		return err
	}
	if err := host.Start(); err != nil {
		return err
	}
	// The host closes its output once the address is written; all it ever says is why it could not.
	problem, err := io.ReadAll(output)
	if err == nil && len(problem) > 0 {
		err = errors.New(string(problem))
	}
	return errors.Join(err, host.Process.Release())
}

// hostMain is the main function of the host. It returns the exit code.
func hostMain(path string) int {
	if err := host(path); err != nil {
		fmt.Print(err)
		return 1
	}
	return 0
}

func host(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cluster, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		return err
	}
	err = os.WriteFile(path, []byte(cluster.DSN()), 0o600)
	if err == nil {
		err = errors.Join(os.Stdout.Close(), awaitUnused(path))
	}
	return errors.Join(err, cluster.Stop())
}

// awaitUnused returns when no process has used the address for a while, and the file is removed.
func awaitUnused(path string) error {
	for {
		file, err := lock(path, syscall.LOCK_EX)
		if err != nil {
			return err
		}
		file.Close()
		time.Sleep(linger)
		file, err = lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return err
		}
		return errors.Join(os.Remove(path), file.Close())
	}
}

// lock opens the file, makes it if need be, and locks it until it is closed.
func lock(path string, how int) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), how); err != nil {
			file.Close()
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			return nil, err
		}
		// While we waited, a host may have removed the file, and others may have made a new one.
		locked, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if current, err := os.Stat(path); err == nil && os.SameFile(locked, current) {
			return file, nil
		}
		file.Close()
	}
}

// answering returns the address in the file and whether a server answers there in time. Whoever has the port of a server that was killed may
// never say a word.
func answering(file *os.File, within time.Duration) (string, bool) {
	dsn, err := io.ReadAll(file)
	if err != nil || len(dsn) == 0 {
		return "", false
	}
	db, err := sql.Open("pgx", string(dsn))
	if err != nil {
		return "", false
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return string(dsn), db.PingContext(ctx) == nil
}
