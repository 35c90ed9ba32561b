package rules_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

const maxLines = 500

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for name, source := range sourceFiles(t, ".go") {
		if lines := bytes.Count(source, []byte("\n")); lines > maxLines && !generated.Match(source) {
			t.Errorf("%s has %d lines, more than %d: split it by verb", name, lines, maxLines)
		}
	}
}

var (
	statement = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b|(?i:\b(insert into|delete from)\b)`)

	// Folders whose Go may hold statements, beside generated code: helpers of tests, and the demo's shop, which is an application.
	statementFolders = []string{"db/dbtest", "internal/demo", "internal/pgtest", "bench", "proof"}
)

func TestStatementsLiveInQueries(t *testing.T) {
	t.Parallel()
	for name, source := range sourceFiles(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || generated.Match(source) || withinAny(path.Dir(name), statementFolders) {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if ok && literal.Kind == token.STRING && statement.MatchString(literal.Value) {
				t.Errorf("%s: SQL in a string; statements belong in queries/", files.Position(literal.Pos()))
			}
			return true
		})
	}
}

var (
	comment   = regexp.MustCompile(`--[^\n]*`)
	swappable = regexp.MustCompile(`(?i:\bnextval)\s*\(\s*'[^']*'`) // by package schemaname
	literals  = regexp.MustCompile(`'(?:[^']|'')*'`)
)

// A schema of another name is served by swapping the qualifier in the statement's text, which must not touch data.
func TestQualifierIsNotInStringLiterals(t *testing.T) {
	t.Parallel()
	for name, source := range sourceFiles(t, ".sql") {
		if !within(name, "queries") {
			continue
		}
		code := swappable.ReplaceAll(comment.ReplaceAll(source, nil), nil)
		for _, literal := range literals.FindAll(code, -1) {
			if bytes.Contains(literal, []byte("outbox.")) {
				t.Errorf("%s: the literal %s holds the schema's qualifier", name, literal)
			}
		}
	}
}

// make generate and go generate ./... are the same thing, so that neither can be stale alone.
func TestMakeGenerate(t *testing.T) {
	t.Parallel()
	dryRun := exec.Command("make", "-C", root, "--no-print-directory", "-n", "generate")
	dryRun.Env = append(os.Environ(), "MAKEFLAGS=", "GO=go") // of a make that runs this test
	out, err := dryRun.CombinedOutput()
	if got := string(out); err != nil || got != "go generate ./...\n" {
		t.Errorf("make generate runs %q, %v", got, err)
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// sourceFiles returns the project's files with the extension, by their path from the root.
func sourceFiles(t *testing.T, extension string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) == extension {
			files[name], err = fs.ReadFile(tree, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
