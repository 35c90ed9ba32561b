// Command reqdoc writes into the last column of docs/requirements.md the tests that show each behaviour. A test says so itself, in its
// comment, by a line such as
//
//	// Shows: S1.25 S4.10 I13
//
// The other columns are written by hand. What is wrong with the page or with such lines is told by this package's test.
package main

import (
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
)

const page = "docs/requirements.md"

func main() {
	log.SetFlags(0)
	found, err := read(os.DirFS("."))
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(page, []byte(fill(string(text), found.tests)), 0o644); err != nil {
		log.Fatal(err)
	}
}

// row is a line of the page: id, behaviour, what serves it, tests.
var row = regexp.MustCompile(`(?m)^\| (S\d+\.\d+) \| (.*?) \| (.*?) \| (.*) ?\|$`)

// fill writes the column of tests anew.
func fill(text string, tests []test) string {
	return row.ReplaceAllStringFunc(text, func(line string) string {
		cells := row.FindStringSubmatch(line)
		return fmt.Sprintf("| %s | %s | %s | %s |", cells[1], cells[2], cells[3], cite(cells[1], tests))
	})
}

func cite(id string, tests []test) string {
	var cited []string
	for _, t := range tests {
		if slices.Contains(t.shows, id) {
			cited = append(cited, fmt.Sprintf("[%s](../%s)", t.name, t.file))
		}
	}
	return strings.Join(cited, ", ")
}

// behaviours is how many rows each of the four systems has.
var behaviours = []int{41, 14, 25, 29}

var invariant = regexp.MustCompile(`(?m)^\| (I\d+) \|`)

// problems lists what is wrong with the page, given the table of invariants and what the tests say.
func problems(text, invariants string, found findings) []string {
	wrong := slices.Clone(found.stray)
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var want, have []string
	for system, rows := range behaviours {
		for i := range rows {
			want = append(want, fmt.Sprintf("S%d.%d", system+1, i+1))
		}
	}
	for _, cells := range row.FindAllStringSubmatch(text, -1) {
		id := cells[1]
		have = append(have, id)
		if cite(id, found.tests) == "" {
			say("%s is shown by no test", id)
		}
		if strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
			say("%s has an empty cell", id)
		}
	}
	if !slices.Equal(have, want) {
		say("the rows are %q, not %q", have, want)
	}
	for _, match := range invariant.FindAllStringSubmatch(invariants, -1) {
		want = append(want, match[1])
	}
	for _, t := range found.tests {
		for _, id := range t.shows {
			if !slices.Contains(want, id) {
				say("%s: %s shows %s, which does not exist", t.file, t.name, id)
			}
		}
		if !t.asserts {
			say("%s: %s cannot fail", t.file, t.name)
		}
	}
	return wrong
}
