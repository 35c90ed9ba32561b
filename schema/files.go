package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed bootstrap postgres sqlite roles
var embedded embed.FS

// FS holds the SQL files, written for the schema outbox, for those who migrate with a tool of their own: the migrations in
// goose's form under postgres/ and sqlite/, in bootstrap/postgres/create.sql and bootstrap/sqlite/version.sql what must exist before
// the first one, and the rights of roles under roles/. Those of SQLite are for a tool that runs each in one transaction.
var FS fs.FS = embedded

var (
	postgres           = must(fs.Sub(embedded, "postgres"))
	postgresStatements = must(parse(must(fs.Sub(embedded, "bootstrap/postgres"))))
	sqlite             = must(fs.Sub(embedded, "sqlite"))
	sqliteStatements   = must(parse(must(fs.Sub(embedded, "bootstrap/sqlite"))))
)

// must is for what can only fail if the files were embedded wrongly, which every test would show.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// parse returns the named statements of the files: the lines after "-- name:", without comments.
func parse(files fs.FS) (map[string]string, error) {
	statements := map[string]string{}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		content, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		var name string
		for line := range strings.Lines(string(content)) {
			if header, ok := strings.CutPrefix(line, "-- name: "); ok {
				name = strings.TrimSpace(header)
			} else if !strings.HasPrefix(line, "--") && name != "" {
				statements[name] += line
			}
		}
	}
	return statements, nil
}

// statement returns the text of a named statement, as this installation runs it.
func (in *installation) statement(name string) string {
	text, ok := in.statements[name]
	if !ok {
		panic("schema: no statement " + name)
	}
	return in.rewrite(strings.TrimSpace(text))
}

// source is the file of a migration.
type source struct {
	version int64
	file    string
}

// sources returns the migrations, oldest first: their numbers are padded with zeros.
func (in *installation) sources() ([]source, error) {
	files, err := fs.Glob(in.migrations, "*.sql")
	if err != nil {
		return nil, err
	}
	sources := make([]source, len(files))
	for i, file := range files {
		number, _, _ := strings.Cut(file, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", file, err)
		}
		sources[i] = source{version: version, file: file}
	}
	return sources, nil
}

// rewritten is the migrations as this installation runs them.
type rewritten struct{ in *installation }

func (r rewritten) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(r.in.migrations, name)
}

func (r rewritten) Open(name string) (fs.File, error) {
	file, err := r.in.migrations.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := fs.ReadFile(r.in.migrations, name)
	if err != nil {
		file.Close()
		return nil, err
	}
	return textFile{File: file, text: strings.NewReader(r.in.rewrite(string(content)))}, nil
}

// textFile is a file with another content.
type textFile struct {
	fs.File
	text *strings.Reader
}

func (f textFile) Read(p []byte) (int, error) { return f.text.Read(p) }
