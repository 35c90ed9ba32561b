package contest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencepost-go/fencepost/internal/pgserver"
)

// settings come on top of those of pgserver, which has no fsync: waiting for a disk would cost all contenders alike, and make the differences smaller than
// they are. Checkpoints would hit one contender and not the other. Autovacuum stays on, as every product wants it.
var settings = []string{
	"ALTER SYSTEM SET checkpoint_timeout = '1h'",
	"ALTER SYSTEM SET max_wal_size = '16GB'",
	"SELECT pg_reload_conf()",
}

// A Server is a throwaway PostgreSQL of this run.
type Server struct {
	DB      *sql.DB
	Version string

	cluster    *pgserver.Cluster
	postmaster int
}

// Start makes one. Close ends it.
func Start(ctx context.Context) (_ *Server, err error) {
	cluster, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		return nil, err
	}
	s := &Server{cluster: cluster}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.DB, err = sql.Open("pgx", cluster.DSN()); err != nil {
		return nil, err
	}
	s.DB.SetMaxOpenConns(1)
	for _, setting := range settings {
		if _, err := s.DB.ExecContext(ctx, setting); err != nil {
			return nil, err
		}
	}
	var backend int
	if err := s.DB.QueryRowContext(ctx, "SELECT pg_backend_pid(), current_setting('server_version')").Scan(&backend, &s.Version); err != nil {
		return nil, err
	}
	s.postmaster, err = parent(backend)
	return s, err
}

// Close ends the server, and nothing of it is left.
func (s *Server) Close() error {
	var err error
	if s.DB != nil {
		err = s.DB.Close()
	}
	return errors.Join(err, s.cluster.Stop())
}

// Database makes an empty database and gives its URL.
func (s *Server) Database(ctx context.Context, name string) (string, error) {
	if _, err := s.DB.ExecContext(ctx, `CREATE DATABASE "`+name+`"`); err != nil {
		return "", err
	}
	u, err := url.Parse(s.cluster.DSN())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Settle writes out what earlier work left to be written, so that it costs the next contender nothing.
func (s *Server) Settle(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, "CHECKPOINT")
	return err
}

// Measure does some work, which says of how many messages it was, and says what it took.
func (s *Server) Measure(ctx context.Context, work func() (messages int, err error)) (Usage, error) {
	before, err := s.meters(ctx)
	if err != nil {
		return Usage{}, err
	}
	start := time.Now()
	messages, err := work()
	if err != nil {
		return Usage{}, err
	}
	wall := time.Since(start)
	after, err := s.meters(ctx)
	return Usage{messages, wall, after.client - before.client, after.server - before.server, after.wal - before.wal}, err
}

// meters are counters that rise.
type meters struct {
	client, server time.Duration
	wal            int64
}

func (s *Server) meters(ctx context.Context) (m meters, err error) {
	if err := s.DB.QueryRowContext(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&m.wal); err != nil {
		return m, err
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} { // finer than /proc, which has the children that still run
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return m, err
		}
		m.client += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	running, err := children(os.Getpid())
	if err != nil {
		return m, err
	}
	m.client += running
	m.server, err = family(s.postmaster)
	return m, err
}

// tick is what the kernel counts CPU time in.
const tick = time.Second / 100

// family is the CPU time of a process, of the children that it has and of those that it had.
func family(pid int) (time.Duration, error) {
	self, err := stat(pid)
	if err != nil {
		return 0, err
	}
	running, err := children(pid)
	return time.Duration(self.own+self.reaped)*tick + running, err
}

// children is the CPU time of the children that a process has, whichever thread made them.
func children(pid int) (time.Duration, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, list := range lists {
		content, _ := os.ReadFile(list) // of a thread that has just ended there is none
		for _, field := range strings.Fields(string(content)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return 0, err
			}
			if s, err := stat(child); err == nil { // else it has just ended
				total += s.own
			}
		}
	}
	return time.Duration(total) * tick, nil
}

func parent(pid int) (int, error) {
	s, err := stat(pid)
	return s.parent, err
}

type process struct{ parent, own, reaped int }

// stat reads what the kernel tells of a process (proc_pid_stat(5)): the fields after the name, which ends in the last parenthesis.
func stat(pid int) (p process, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	text := string(content)
	var user, system, reapedUser, reapedSystem int
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	for i, value := range map[int]*int{1: &p.parent, 11: &user, 12: &system, 13: &reapedUser, 14: &reapedSystem} {
		if *value, err = strconv.Atoi(fields[i]); err != nil {
			return p, err
		}
	}
	p.own, p.reaped = user+system, reapedUser+reapedSystem
	return p, nil
}
