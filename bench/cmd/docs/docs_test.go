package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The page and its plots are those of the committed runs: after a new run, make bench-docs.
func TestDocsAreThoseOfTheRuns(t *testing.T) {
	const docs = "../../../docs"
	files, err := generate(docs, "../../results")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		committed, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil || !bytes.Equal(committed, files[name]) {
			t.Errorf("docs/%s is not what the runs give; run make bench-docs (%v)", name, err)
		}
	}
	drawn, err := filepath.Glob(filepath.Join(docs, plots, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range drawn {
		if files[filepath.Join(plots, filepath.Base(name))] == nil {
			t.Errorf("%s comes from no run", name)
		}
	}
}

func TestTheSameRunsGiveTheSameBytes(t *testing.T) {
	files, err := generate("testdata", "testdata/results")
	if err != nil {
		t.Fatal(err)
	}
	again, err := generate("testdata", "testdata/results")
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(files, again, bytes.Equal) {
		t.Error("two runs of the command differ")
	}
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, []string{"benchmarks.md", "benchmarks/w1.svg", "benchmarks/w3.svg", "benchmarks/w6.svg"}) {
		t.Errorf("files: %q", names)
	}
	for _, part := range []string{"<svg", "river", "55,555", "messages a second", "Arial"} {
		if !bytes.Contains(files["benchmarks/w1.svg"], []byte(part)) {
			t.Errorf("the plot of W1 has no %q", part)
		}
	}
}

func TestTablesAreFilled(t *testing.T) {
	files, err := generate("testdata", "testdata/results")
	if err != nil {
		t.Fatal(err)
	}
	text := string(files[benchmarksPage])
	for _, part := range []string{
		"Abacus 8080, 2 cores, 23 GB of memory, Linux 6.1, go1.26.0; 0.5 of the full sizes, 3 rounds. PostgreSQL with fsync=off, shared_buffers=256MB.",
		"| | messages/s | client CPU µs | server CPU µs | WAL bytes | fencepost is |\n|---|--:|--:|--:|--:|--:|\n" +
			"| fencepost | 50,000 | 9.50 |  | 467 |  |\n| floor | 55,555 |  | 15.0 | 467 | 0.90 × |\n| river | 11,111 | 60.0 |  | 2,440 | 4.50 × |\n",
		"Run `2026-01-01`: 100000 messages, medians of 3 rounds, PostgreSQL 15.1, at 0.5 of the full sizes.\n",
		"\n\n- fencepost: pgx, one sender.\n- floor: in the server.\n",
		"| 10,000,000 | 6.90 | 11.2 | 0.82 × 10,000 |\n",
		"| fencepost hand-off | 0.40 |",
		"<!-- measured W15 -->\nNot measured yet.\n<!-- end -->\n\nKept.\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page has no %q in\n%s", part, text)
		}
	}
	if strings.Contains(text, "old") {
		t.Error("what a section held before is still there")
	}
	again, err := fill([]byte(text), must(t))
	if err != nil || string(again) != text {
		t.Errorf("filled twice, the page differs: %v", err)
	}
}

func must(t *testing.T) *results {
	t.Helper()
	all, err := readResults("testdata/results")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestALaterRunReplacesAnEarlierOnesWorkload(t *testing.T) {
	folder := t.TempDir()
	first, err := os.ReadFile("testdata/results/2026-01-01.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(first), "\n")
	one, _, _ := strings.Cut(rest, "\n")
	for name, content := range map[string]string{"a.jsonl": string(first), "b.jsonl": head + "\n" + strings.ReplaceAll(one, "50000", "60000") + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := readResults(folder)
	if err != nil {
		t.Fatal(err)
	}
	if w1 := all.of("W1"); len(w1) != 1 || w1[0].figures["rate"] != 60_000 || all.from["W1"].Run != "b" {
		t.Errorf("W1: %+v of %s", w1, all.from["W1"].Run)
	}
	if len(all.of("W3")) != 3 || all.from["W3"].Run != "a" || len(all.machines) != 2 {
		t.Errorf("W3: %+v", all.of("W3"))
	}
}

func TestAWorkloadWithoutASectionIsRefused(t *testing.T) {
	if _, err := fill([]byte("# Nothing\n"), must(t)); err == nil || !strings.Contains(err.Error(), "no section for W") {
		t.Error(err)
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		records []record
		want    []string
	}{
		{[]record{{peer: "fencepost"}, {peer: "watermill"}}, []string{"fencepost", "watermill (no lease)"}},
		{[]record{{peer: "fencepost", variant: "alone"}, {peer: "fencepost", variant: "beside"}}, []string{"alone", "beside"}},
		{[]record{{peer: "fencepost"}, {peer: "fencepost", variant: "listen"}, {peer: "river"}}, []string{"fencepost", "fencepost listen", "river"}},
	} {
		if got := labels(c.records); !slices.Equal(got, c.want) {
			t.Errorf("labels %q, want %q", got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 0.126: "0.13", 9.994: "9.99", 9.996: "10.0", 12.34: "12.3", 99.96: "100", 123.4: "123", 1234: "1,234", 1234567: "1,234,567", -1234: "-1,234",
	} {
		if got := number(value); got != want {
			t.Errorf("number(%v) = %q, want %q", value, got, want)
		}
	}
}
