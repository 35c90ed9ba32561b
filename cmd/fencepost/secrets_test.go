package main

import (
	"net"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

const canary = "s3cr3t-canary"

// Connection strings in every form, good and bad, whose password is the canary. ADDR stands for host and port.
var connectionStrings = []string{
	"postgres://user:s3cr3t-canary@ADDR/db",
	"postgresql://user:s3cr3t-canary@ADDR/db?sslmode=disable",
	"POSTGRES://user:s3cr3t-canary@ADDR/db",
	"postgres://ADDR/db?user=user&password=s3cr3t-canary",
	"postgres://user@ADDR/db?sslpassword=s3cr3t-canary",
	"host=127.0.0.1 port=1 user=user dbname=db password=s3cr3t-canary",
	"host=127.0.0.1 port=1 user=user dbname=db password='s3cr3t-canary'",
	"host=127.0.0.1 port=1 user=user dbname=db password='it''s s3cr3t-canary",
	"host=127.0.0.1 port=1 user=user dbname=db password=two s3cr3t-canary",
	"host=127.0.0.1 port=1 passwrd=s3cr3t-canary",
	"password=s3cr3t-canary",
	"user:s3cr3t-canary@ADDR/db",
	"postgres:/user:s3cr3t-canary@ADDR/db",
	"postgres:user:s3cr3t-canary@ADDR/db",
	"postgres//user:s3cr3t-canary@ADDR/db",
	"mysql://user:s3cr3t-canary@ADDR/db",
	"postgres://user:a%zzs3cr3t-canary@ADDR/db",
	"postgres://user:a/s3cr3t-canary@ADDR/db",
	"postgres://127.0.0.1:1/s3cr3t-canary@ADDR/db",
	"postgres://127.0.0.1:1?s3cr3t-canary@ADDR/db",
	"postgres://127.0.0.1:1#s3cr3t-canary@ADDR/db",
	"postgres://user:a?s3cr3t-canary@ADDR/db",
	"postgres://user:a#s3cr3t-canary@ADDR/db",
	"postgres://user:a@s3cr3t-canary@ADDR/db",
	"postgres://user:s3cr3t-canary @ADDR/db",
	"postgres://user:s3cr3t-canary@ADDR:notaport/db",
	"postgres://user:s3cr3t-canary@[::1/db",
	"postgres://user:s3cr3t-canary@ADDR/db?connect_timeout=never",
	"postgres://user:s3cr3t-canary@ADDR/db?sslmode=perhaps",
	"postgres://user:s3cr3t-canary@ADDR/db?pool_max_conns=none",
	"postgres://user:s3cr3t-canary@ADDR/db\n",
}

// A password is never printed: not when its connection string is bad, went to the wrong place, or leads nowhere.
func TestPasswordsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, dsn := range connectionStrings {
		dsn = strings.ReplaceAll(dsn, "ADDR", "127.0.0.1:1")
		for _, args := range [][]string{
			{"status", "--dsn", dsn},
			{"status", "--dsn=" + dsn, "--json"},
			{"migrate", "--dsn", dsn},
			{"list", "--dsn", dsn, "--limit", "0"},
			{dsn},
			{"status", dsn},
			{"show", dsn},
			{"help", dsn},
			{"status", "--dns", dsn},
			{"status", "--" + dsn},
			{"status", "-" + dsn},
			{"status", "--=" + dsn},
			{"status", "--schema", dsn},
			{"status", "--timeout", dsn},
			{"list", "--limit", dsn},
			{"list", "--state", dsn},
			{"list", "--after", dsn},
			{"list", "--json=" + dsn},
			{"replay", dsn, "--reason", "r"},
			{"resolve", "--as", dsn},
			{"cancel", "--older-than", dsn},
			{"cancel", "--all", "--yes", "--after", dsn, "--reason", "r"},
			{"pause", dsn, "--all", "--reason", "r"},
			{"resume", "--all", "--reason", "r", "--dsn", dsn},
			{"release", "--worker", dsn, "--reason", "r"},
			{"unblock", "--order-key", dsn, "--reason", "r"},
			{"enqueue", dsn},
			{"tail", "--state", dsn},
			{"retries", dsn},
			{"retries", "1", "--jitter", dsn},
			{"work", "--dsn", dsn, "--consumer", "c", "--target", "t", "--kind", "k", "--exec", "no-such-command"},
			{"work", "--consumer", "c", "--target", "t", "--kind", "k", "--exec", dsn},
			{"work", dsn},
			{"work", "--consumer", "c", "--target", "t", "--kind", "k", "--credential-file", dsn, "--exec", "true"},
			{"worker", "add", dsn, "--consumer", "c", "--reason", "r"},
			{"worker", "add", "w", "--consumer", "c", "--reason", "r", "--dsn", dsn, "--out", dsn},
			{"worker", "revoke", dsn, "--reason", "r"},
			{"completion", dsn},
		} {
			r := command(t, args...)
			if strings.Contains(r.stdout+r.stderr, canary) {
				t.Errorf("fencepost %q prints the password: %s%s", args, r.stderr, r.stdout)
			}
			if r.code == exitOK || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("fencepost %q: code %d, %q", args, r.code, r.stderr)
			}
		}
	}
}

// Servers that refuse, hang up or ask for a password: the error says what is wrong and not with which password.
func TestPasswordsAreNotInErrorsOfServers(t *testing.T) {
	t.Parallel()
	server := strings.Split(strings.Split(pgtest.New(t), "@")[1], "/")[0]
	for addr, want := range map[string]string{
		"127.0.0.1:1":             "connection refused",
		hangingUp(t):              "failed to receive message",
		server:                    `role "nobody" does not exist`,
		"no-such-host.invalid:80": "no-such-host.invalid",
	} {
		r := command(t, "status", "--dsn", "postgres://nobody:"+canary+"@"+addr+"/"+canary[:2]+"?sslmode=disable")
		if r.code != exitFailed || strings.Contains(r.stderr, canary) || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %s\nwant %q", addr, r.code, r.stderr, want)
		}
	}
}

// hangingUp is the address of a server that accepts and closes connections.
func hangingUp(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// A server that does not answer costs no more than the timeout.
func TestTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := command(t, "status", "--dsn", "postgres://u:"+canary+"@"+silent.Addr().String()+"/db", "--timeout", "100ms")
	if r.code != exitFailed || !strings.Contains(r.stderr, "no answer within 100ms") || strings.Contains(r.stderr, canary) {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}

func FuzzNothingOfAConnectionStringIsPrinted(f *testing.F) {
	for _, dsn := range connectionStrings {
		f.Add(dsn)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		c := connection{dsn: strings.ReplaceAll(dsn, "ADDR", "127.0.0.1:1")}
		if _, err := c.config("test"); err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", dsn, err)
		}
	})
}
