package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// Each behaviour has its row, and each row its test.
func TestRequirements(t *testing.T) {
	t.Parallel()
	found, err := read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	text := readFile(t, "../../"+page)
	for _, problem := range problems(text, readFile(t, "../../docs/invariants.md"), found) {
		t.Error(problem)
	}
	if fill(text, found.tests) != text {
		t.Errorf("%s is not up to date: make generate", page)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const suite = `package p
import ("testing"; "fmt"; "github.com/fencepost-go/fencepost/helper")
// Shows: S1.1
func TestBody(t *testing.T) { t.Run("", func(t *testing.T) { t.Error("no") }) }
// Shows: S1.2
func TestHelper(t *testing.T) { check(t) }
func check(t *testing.T) { func() { deeper(t) }() }
func deeper(t *testing.T) { check(t); t.Fail() }
// Shows: S1.3 S9.9 I1 I9
func TestOtherPackage(t *testing.T) { helper.Same(t) }
// Shows: S1.4
func TestNothing(t *testing.T) { _, _ = setUp(t), fmt.Errorf("%s", error(nil).Error()) }
func setUp(t *testing.T) int { t.Fatal("cannot"); return 0 }
// Shows: S1.4
func TestRunsNothing(t *testing.T) { inWorld(t, func(int) {}) }
func inWorld(t *testing.T, body func(int)) { body(setUp(t)); t.Cleanup(func() { t.Error("cannot") }) }
// Shows: S1.5
func notATest() {}
// It says nothing.
func TestSilent(t *testing.T) {}
`

func TestProblems(t *testing.T) {
	t.Parallel()
	found, err := read(fstest.MapFS{
		"p/p_test.go":      {Data: []byte(suite)},
		"helper/helper.go": {Data: []byte("package helper\nimport \"testing\"\nfunc Same(t testing.TB) { t.Fatalf(\"differs\") }")},
	})
	if err != nil {
		t.Fatal(err)
	}
	const text = "| S1.1 | one | A | stale |\n| S1.2 | two | B | |\n| S1.3 | three |  | |\n| S1.4 | four | D | |\n| S1.6 | six | F | |\n"
	got := strings.Join(problems(text, "| I1 | holds |", found), "\n")
	for _, want := range []string{
		"p/p_test.go:17:1: Shows stands above no test",
		"S1.3 has an empty cell",
		"S1.6 is shown by no test",
		`the rows are ["S1.1" "S1.2" "S1.3" "S1.4" "S1.6"]`,
		"TestOtherPackage shows S9.9, which does not exist",
		"TestOtherPackage shows I9, which does not exist",
		"TestNothing cannot fail",
		"TestRunsNothing cannot fail",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not told: %s", want)
		}
	}
	if lines := strings.Count(got, "\n") + 1; lines != 8 {
		t.Errorf("%d problems:\n%s", lines, got)
	}
	if first, _, _ := strings.Cut(fill(text, found.tests), "\n"); first != "| S1.1 | one | A | [TestBody](../p/p_test.go) |" {
		t.Errorf("filled: %s", first)
	}
}
