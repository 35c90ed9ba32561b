package schema

import (
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// Print writes the SQL that Up runs on a database without the schema, for those who review it or run it by other means, as
// with psql -v ON_ERROR_STOP=1 or sqlite3 -bail. Up finds nothing left to do after it. What the script lacks is the lock: it is for one
// process at a time.
func Print(w io.Writer, config Config) error {
	in, err := open(nil, config)
	if err != nil {
		return err
	}
	script, err := in.script()
	if err != nil {
		return fmt.Errorf("schema %s: %w", in.name, err)
	}
	_, err = io.WriteString(w, script)
	return err
}

var placeholder = regexp.MustCompile(`[$?]1\b`)

func (in *installation) script() (string, error) {
	var script strings.Builder
	transaction := func(statements ...string) {
		fmt.Fprintf(&script, "BEGIN;\n\n%s\n\nCOMMIT;\n\n", strings.Join(statements, "\n\n"))
	}
	if in.dialect == SQLite {
		transaction(in.statement("CreateVersionTable"))
	} else {
		transaction(in.statement("LimitLockWaits"), in.statement("CreateSchema"), in.statement("CreateVersionTable"))
	}
	sources, err := in.sources()
	if err != nil {
		return "", err
	}
	for _, source := range sources {
		content, err := fs.ReadFile(rewritten{in}, source.file)
		if err != nil {
			return "", err
		}
		up, _, _ := strings.Cut(string(content), "-- +goose Down")
		number := strconv.FormatInt(source.version, 10)
		transaction(strings.TrimSpace(up), placeholder.ReplaceAllString(in.statement("InsertVersion"), number))
	}
	return strings.TrimSuffix(script.String(), "\n"), nil
}
