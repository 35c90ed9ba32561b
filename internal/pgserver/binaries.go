package pgserver

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// BinVariable names the environment variable that chooses the folder of server binaries, to run on another version.
const BinVariable = "FENCEPOST_PG_BIN"

// ErrNoBinaries says that there is no PostgreSQL server on this machine, and what to do about it.
var ErrNoBinaries = errors.New(`found no PostgreSQL server binaries (initdb, pg_ctl, postgres); either
  - install them: "apt-get install postgresql" on Debian and Ubuntu, "brew install postgresql@18" on macOS
  - or set ` + BinVariable + ` to the folder that holds them`)

// globs are the folders where packages put server binaries outside PATH: Debian's, Red Hat's and Homebrew's.
var globs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
}

//go:embed install.sh
var installScript string

// Binaries returns the folder of server binaries: the one that FENCEPOST_PG_BIN names, else the first complete one of
// PATH, pg_config and the packages' folders, newest first. Without any it returns ErrNoBinaries.
func Binaries() (string, error) {
	if dir := os.Getenv(BinVariable); dir != "" {
		if !complete(dir) {
			return "", fmt.Errorf("%s=%s does not hold initdb, pg_ctl and postgres", BinVariable, dir)
		}
		return filepath.Abs(dir)
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, glob := range globs {
		found, _ := filepath.Glob(glob) // fails on a malformed pattern only
		dirs = append(dirs, newestFirst(found)...)
	}
	if i := slices.IndexFunc(dirs, complete); i >= 0 {
		return filepath.Abs(dirs[i])
	}
	return "", ErrNoBinaries
}

// Ensure returns Binaries; where there are none and we are root on a Debian, it installs them first and says so.
func Ensure(ctx context.Context) (string, error) {
	dir, err := Binaries()
	if !errors.Is(err, ErrNoBinaries) || !CanInstall() {
		return dir, err
	}
	if err := Install(ctx); err != nil {
		return "", err
	}
	return Binaries()
}

// CanInstall reports whether Install can: as root on a Debian.
func CanInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// Install installs PostgreSQL and further packages of Debian, and says so.
func Install(ctx context.Context, packages ...string) error {
	fmt.Fprintf(os.Stderr, "installing PostgreSQL %s:\n%s", strings.Join(packages, " "), installScript)
	install := exec.CommandContext(ctx, "sh", append([]string{"-c", installScript, "sh"}, packages...)...)
	install.Stdout, install.Stderr = os.Stderr, os.Stderr
	if err := install.Run(); err != nil {
		return fmt.Errorf("install PostgreSQL %s: %w", strings.Join(packages, " "), err)
	}
	return nil
}

func complete(dir string) bool {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`\d+`)

// newestFirst orders the folders of one package source by the version in their path, where 9 is older than 10. One
// without a version is the default of its source and comes first.
func newestFirst(dirs []string) []string {
	version := func(dir string) int {
		v, err := strconv.Atoi(digits.FindString(dir))
		if err != nil {
			return math.MaxInt
		}
		return v
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return dirs
}
