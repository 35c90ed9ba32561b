package property_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	invariant = regexp.MustCompile(`(?m)^\| (I\d+) \|.*\|([^|]*)\|$`)
	testName  = regexp.MustCompile("`(Test\\w+)`")
)

// The table of docs/invariants.md names tests that exist, and each of its ids is cited in this folder where it is checked.
func TestInvariantsAreCited(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../docs/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	rows := invariant.FindAllStringSubmatch(string(table), -1)
	if len(rows) == 0 {
		t.Fatal("docs/invariants.md has no table")
	}
	for _, row := range rows {
		if !regexp.MustCompile(`\b` + row[1] + `\b`).MatchString(sources.String()) {
			t.Errorf("%s is cited nowhere", row[1])
		}
		for _, name := range testName.FindAllStringSubmatch(row[2], -1) {
			if !strings.Contains(sources.String(), "func "+name[1]+"(t *testing.T)") {
				t.Errorf("%s names %s, which is no test here", row[1], name[1])
			}
		}
	}
}
