// Package floor is what the database itself can do: the library's own statements in a loop inside the server, with no driver and no network. Every
// share of the floor in the benchmarks is measured beside it in the same run.
package floor

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// The workload: one lane of messages that are due at once.
const (
	Consumer     = "billing-worker"
	Target       = "payments-api"
	Kind         = "charge.create"
	MaxAge       = int64(24 * time.Hour / time.Microsecond)
	Lease        = int64(30 * time.Second / time.Microsecond)
	longestLease = int64(db.LongestLease / time.Microsecond)
)

//go:embed floor.sql
var procedures string

// Create creates the procedures floor_enqueue and floor_drain from the statements as they are now, for payloads of so many bytes.
func Create(ctx context.Context, server *sql.DB, payload int) error {
	values := []string{
		"{consumer}", Consumer,
		"{target}", Target,
		"{kind}", Kind,
		"{payload}", strconv.Itoa(payload),
		"{max_age}", strconv.FormatInt(MaxAge, 10),
		"{lease}", strconv.FormatInt(Lease, 10),
		"{longest_lease}", strconv.FormatInt(longestLease, 10),
	}
	var variables []string
	for _, from := range []struct{ file, statement string }{
		{"enqueue", "Enqueue"}, {"work", "Settings"}, {"lease", "LeaseDue"}, {"settle", "SettleDelivered"},
	} {
		text, err := statement(from.file, from.statement)
		if err != nil {
			return err
		}
		for _, match := range argument.FindAllStringSubmatch(text, -1) {
			variables = append(variables, "arg_"+match[1]+" "+match[2]+";")
		}
		values = append(values, "{"+from.statement+"}", argument.ReplaceAllString(text, "arg_$1::$2"))
	}
	slices.Sort(variables)
	values = append(values, "{variables}", strings.Join(slices.Compact(variables), "\n    "))
	_, err := server.ExecContext(ctx, strings.NewReplacer(values...).Replace(procedures))
	return err
}

// Enqueue stores total messages, size to a transaction of one statement.
func Enqueue(ctx context.Context, server *sql.DB, total, size int) error {
	_, err := server.ExecContext(ctx, "CALL floor_enqueue($1, $2)", total, size)
	return err
}

// Drain leases and settles, size at a time, until nothing is due, and says how many that were.
func Drain(ctx context.Context, server *sql.DB, size int) (drained int, err error) {
	err = server.QueryRowContext(ctx, "CALL floor_drain($1, NULL)", size).Scan(&drained)
	return drained, err
}

// one has the arguments of Enqueue for one message of a script for pgbench, whose variables begin with a colon.
var one = map[string]string{
	"tenants":          "''",
	"consumers":        "'" + Consumer + "'",
	"targets":          "'" + Target + "'",
	"kinds":            "'" + Kind + "'",
	"keys":             ":client_id::text || '-' || :number::text",
	"order_keys":       "''",
	"priorities":       "0",
	"digests":          `'\x` + strings.Repeat("d1", 32) + "'",
	"metadatas":        "''",
	"payloads":         ":payload::bytea",
	"source_positions": "0",
	"source_event_ids": "''",
	"max_ages":         strconv.FormatInt(MaxAge, 10),
	"due_ats":          "'0001-01-01'",
	"delays":           "0",
}

// Script is one for pgbench. It stores a message that has the variable payload, by the library's statement in a transaction; number counts from 0.
func Script() (string, error) {
	text, err := statement("enqueue", "Enqueue")
	if err != nil {
		return "", err
	}
	text = argument.ReplaceAllStringFunc(text, func(arg string) string {
		match := argument.FindStringSubmatch(arg)
		return "ARRAY[" + one[match[1]] + "]::" + match[2]
	})
	return "\\set number :number + 1\nBEGIN;\n" + text + ";\nCOMMIT;\n", nil
}

// argument is a parameter of a statement with its type, which every parameter has.
var argument = regexp.MustCompile(`sqlc\.arg\((\w+)\)::(\w+(?:\[\])?)`)

// statement reads one statement of a file of queries/postgres.
func statement(file, name string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "../../queries/postgres", file+".sql")
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, text, found := strings.Cut(string(source), "\n-- name: "+name+" :")
	if !found {
		return "", fmt.Errorf("%s has no statement %s", path, name)
	}
	_, text, _ = strings.Cut(text, "\n") // the rest of the line of the name
	text, _, _ = strings.Cut(text, ";\n")
	return text, nil
}
