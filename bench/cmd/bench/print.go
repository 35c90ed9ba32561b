package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fencepost-go/fencepost/bench/contest"
)

// record is a row as JSON.
func (r *report) record(workload string, l *row) map[string]any {
	record := map[string]any{
		"workload": workload, "peer": l.peer, "rounds": len(l.rounds), "about": r.about, "postgresql": r.server, "settings": l.settings,
	}
	if l.variant != "" {
		record["variant"] = l.variant
	}
	for _, name := range l.names() {
		record[name] = median(l.values(name))
	}
	if ours := r.find(fencepost, l.variant); ours != nil {
		record["ratio_vs_fencepost"] = r.ratio(l, ours, r.keys()[0])
	}
	if ratios := r.ratios(l); len(ratios) > 0 {
		record["ratios"] = ratios
	}
	return record
}

// printMachine is the first line of a run, which the documentation is made of.
func (r *report) printMachine(w io.Writer, o options) error {
	return json.NewEncoder(w).Encode(struct {
		Workload string `json:"workload"`
		contest.Machine
		Share  float64 `json:"share"`
		Rounds int     `json:"rounds"`
	}{"machine", r.machine, o.share, o.rounds})
}

func (r *report) print(w io.Writer, workload string, asJSON bool) error {
	if !asJSON {
		return r.table(w)
	}
	encoder := json.NewEncoder(w)
	for _, l := range r.rows {
		if err := encoder.Encode(r.record(workload, l)); err != nil {
			return err
		}
	}
	return nil
}

// table is for people.
func (r *report) table(w io.Writer) error {
	var names []string
	for _, l := range r.rows {
		for _, name := range l.names() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t")
	for _, name := range names {
		fmt.Fprintf(table, "%s\t", title(name))
	}
	fmt.Fprint(table, "fencepost is\t\n")
	for _, l := range r.rows {
		fmt.Fprintf(table, "%s\t", label(l.peer, l.variant))
		for _, name := range names {
			text := ""
			if values := l.values(name); len(values) > 0 {
				text = format(median(values))
			}
			fmt.Fprintf(table, "%s\t", text)
		}
		fmt.Fprintf(table, "%s\t\n", r.verdict(l))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nPostgreSQL %s; medians of %d rounds; %s. CPU and WAL are a message's.\n", r.server, r.rounds, r.about)
	for _, l := range r.rows {
		_, err = fmt.Fprintf(w, "%s: %s\n", label(l.peer, l.variant), l.settings)
	}
	return err
}

// verdict is how fencepost stands to a row: to another's in its variant, to its own in the first variant.
func (r *report) verdict(l *row) string {
	if l.peer != fencepost {
		if ours := r.find(fencepost, l.variant); ours != nil {
			return fmt.Sprintf("%.2f ×", r.ratio(ours, l, r.keys()[0]))
		}
	} else if first := r.find(fencepost, ""); first != l {
		return fmt.Sprintf("%.2f of %s", r.ratio(l, first, r.keys()[0]), cmp.Or(first.variant, first.peer))
	}
	return ""
}

func label(peer, variant string) string { return strings.TrimSpace(peer + " " + variant) }

// title is a figure's name as the head of its column.
func title(name string) string {
	if name == "rate" {
		return "messages/s"
	}
	if micros, is := strings.CutSuffix(name, "_us"); is {
		name = micros + "_µs"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// format gives three digits that matter.
func format(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}
