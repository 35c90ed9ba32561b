package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A comparison gathers the rounds of a workload.
type comparison struct {
	guarded
	variants []string
	values   map[key][]float64 // one for each round
}

type key struct {
	variant, figure string
	head            bool
}

func newComparison(w guarded) *comparison {
	return &comparison{guarded: w, values: map[key][]float64{}}
}

// add takes what a program printed as one round's: the lines of fencepost.
func (c *comparison) add(head bool, out []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	found := false
	for lines.Scan() {
		var fields map[string]any
		if err := json.Unmarshal(lines.Bytes(), &fields); err != nil {
			return err
		}
		if fields["workload"] != c.workload || fields["peer"] != "fencepost" {
			continue
		}
		found = true
		variant, _ := fields["variant"].(string)
		if !slices.Contains(c.variants, variant) {
			c.variants = append(c.variants, variant)
		}
		for _, g := range c.figures {
			if value, ok := fields[g.name].(float64); ok {
				k := key{variant, g.name, head}
				c.values[k] = append(c.values[k], value)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("printed nothing of %s", c.workload)
	}
	return nil
}

// A verdict is on one figure.
type verdict struct {
	name       string
	base, head float64 // medians
	ratio      float64 // how many times as good head is: the median of the rounds' pairs
	bad        bool
}

// verdicts leaves out what only one of the two measures.
func (c *comparison) verdicts() []verdict {
	var all []verdict
	for _, variant := range c.variants {
		for _, g := range c.figures {
			base, head := c.values[key{variant, g.name, false}], c.values[key{variant, g.name, true}]
			if len(base) == 0 || len(base) != len(head) {
				continue
			}
			ratios := make([]float64, len(base))
			for i := range ratios {
				if ratios[i] = head[i] / base[i]; g.lessIsBetter {
					ratios[i] = base[i] / head[i]
				}
			}
			ratio := median(ratios)
			name := strings.Join(strings.Fields(c.workload+" "+variant+" "+g.name), " ")
			all = append(all, verdict{name, median(base), median(head), ratio, !(ratio >= g.least)})
		}
	}
	return all
}

// median is the middle of some values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// tell prints the verdicts, and is the error of bad ones.
func tell(w io.Writer, all []verdict) error {
	if len(all) == 0 {
		return errors.New("there is nothing to compare")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\tbase\thead\thead is as good\t\n")
	var worse []string
	for _, v := range all {
		mark := ""
		if v.bad {
			mark = "  worse"
			worse = append(worse, v.name)
		}
		fmt.Fprintf(table, "%s\t%.4g\t%.4g\t%.2f ×%s\t\n", v.name, v.base, v.head, v.ratio, mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(worse) > 0 {
		return fmt.Errorf("worse than the base: %s", strings.Join(worse, ", "))
	}
	return nil
}
