package bench

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed floor.sql
var floorSQL string

// floor is the loop inside the server.
type floor struct{}

func (floor) enqueue(ctx context.Context, total, size int) error {
	_, err := server.ExecContext(ctx, "CALL floor_enqueue($1, $2)", total, size)
	return err
}

func (floor) drain(ctx context.Context, size int) (drained int, err error) {
	err = server.QueryRowContext(ctx, "CALL floor_drain($1, NULL)", size).Scan(&drained)
	return drained, err
}

// createFloor creates the procedures from the statements as they are now.
func createFloor(ctx context.Context) error {
	values := []string{
		"{consumer}", consumer,
		"{target}", target,
		"{kind}", kind,
		"{payload}", strconv.Itoa(payloadSize),
		"{max_age}", strconv.FormatInt(maxAge, 10),
		"{lease}", strconv.FormatInt(leaseFor, 10),
		"{longest_lease}", strconv.FormatInt(longestLease, 10),
	}
	var variables []string
	for _, from := range []struct{ file, statement string }{
		{"enqueue", "Enqueue"}, {"work", "Settings"}, {"lease", "LeaseDue"}, {"settle", "SettleDelivered"},
	} {
		text, err := statement("../queries/postgres/"+from.file+".sql", from.statement)
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
	_, err := server.ExecContext(ctx, strings.NewReplacer(values...).Replace(floorSQL))
	return err
}

// argument is a parameter of a statement with its type, which every parameter has.
var argument = regexp.MustCompile(`sqlc\.arg\((\w+)\)::(\w+(?:\[\])?)`)

// statement reads one statement of a file.
func statement(file, name string) (string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, text, found := strings.Cut(string(source), "\n-- name: "+name+" :")
	if !found {
		return "", fmt.Errorf("%s has no statement %s", file, name)
	}
	_, text, _ = strings.Cut(text, "\n") // the rest of the line of the name
	text, _, _ = strings.Cut(text, ";\n")
	return text, nil
}
