// Command docs draws the plots and writes the tables of docs/benchmarks.md from the runs of bench/results.
//
//	go -C bench run ./cmd/docs
//
// The same runs give the same bytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("../docs", "results"); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(docs, runs string) error {
	files, err := generate(docs, runs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(docs, plots), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(docs, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

const (
	benchmarksPage = "benchmarks.md"
	plots          = "benchmarks" // their folder
)

// generate makes the files that follow from the runs, by their path under docs.
func generate(docs, runs string) (map[string][]byte, error) {
	r, err := readResults(runs)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(docs, benchmarksPage))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, c := range charts {
		drawn, err := c.draw(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
		if drawn != nil {
			files[filepath.Join(plots, c.file+".svg")] = drawn
		}
	}
	files[benchmarksPage], err = fill(text, r)
	return files, err
}
