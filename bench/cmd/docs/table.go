package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const fencepost = "fencepost"

// sections are the parts of the page that come from the runs.
var sections = regexp.MustCompile(`(?s)(<!-- measured (\S+) -->\n).*?(<!-- end -->\n)`)

// fill writes the measured parts of a page anew.
func fill(page []byte, all *results) ([]byte, error) {
	homeless := map[string]bool{}
	for _, r := range all.records {
		homeless[r.workload] = true
	}
	filled := sections.ReplaceAllFunc(page, func(section []byte) []byte {
		parts := sections.FindSubmatch(section)
		name := string(parts[2])
		delete(homeless, name)
		var text string
		if name == "machine" {
			text = machines(all)
		} else {
			text = table(all, name)
		}
		return slices.Concat(parts[1], []byte(text), parts[3])
	})
	for name := range homeless {
		return nil, fmt.Errorf("%s has no section for %s", benchmarksPage, name)
	}
	return filled, nil
}

// heads are the columns in their order. A figure that is not here comes after them, by its name.
var heads = []struct{ figure, head string }{
	{"rate", "messages/s"},
	{"p50_ms", "p50 ms"}, {"p95_ms", "p95 ms"}, {"p99_ms", "p99 ms"},
	{"client_cpu_us", "client CPU µs"}, {"server_cpu_us", "server CPU µs"}, {"wal_bytes", "WAL bytes"},
	{"client_allocs_per_message", "allocations"},
}

// apart are numbers that are no column.
var apart = []string{"rounds", "ratio_vs_fencepost", "backlog", "batch"}

func columns(records []record) (figures, titles []string) {
	var names []string
	for _, r := range records {
		for name := range r.figures {
			if !slices.Contains(names, name) && !slices.Contains(apart, name) {
				names = append(names, name)
			}
		}
	}
	place := func(name string) int {
		for i, h := range heads {
			if h.figure == name {
				return i
			}
		}
		return len(heads)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b)) })
	for _, name := range names {
		title := strings.ReplaceAll(name, "_", " ")
		if i := place(name); i < len(heads) {
			title = heads[i].head
		}
		titles = append(titles, title)
	}
	return names, titles
}

// table shows a workload: its plot, a row for each record, and what it was.
func table(all *results, workload string) string {
	records := all.of(workload)
	if len(records) == 0 {
		return "Not measured yet.\n"
	}
	var b strings.Builder
	for _, c := range charts {
		if c.workload == workload {
			fmt.Fprintf(&b, "![%s, %s](%s/%s.svg)\n\n", c.title, c.unit, plots, c.file)
		}
	}
	figures, titles := columns(records)
	verdicts := verdicts(records)
	fmt.Fprintf(&b, "| | %s |%s\n", strings.Join(titles, " | "), map[bool]string{true: " fencepost is |"}[verdicts != nil])
	fmt.Fprintf(&b, "|---%s|%s\n", strings.Repeat("|--:", len(titles)), map[bool]string{true: "--:|"}[verdicts != nil])
	for i, name := range labels(records) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, figure := range figures {
			text := ""
			if value, ok := records[i].figures[figure]; ok {
				text = number(value)
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		if verdicts != nil {
			fmt.Fprintf(&b, " %s |", verdicts[i])
		}
		b.WriteString("\n")
	}
	m := all.from[workload]
	fmt.Fprintf(&b, "\nRun `%s`: %s, medians of %.0f rounds, PostgreSQL %s%s.\n",
		m.Run, records[0].about, records[0].figures["rounds"], records[0].postgresql, partly(m))
	settings := map[string]bool{}
	for i, name := range labels(records) {
		if text := records[i].settings; text != "" && !settings[records[i].peer+text] {
			settings[records[i].peer+text] = true
			fmt.Fprintf(&b, "%s- %s: %s.\n", map[bool]string{true: "\n"}[len(settings) == 1], name, text)
		}
	}
	return b.String()
}

// partly warns of a run that was not made at the full sizes.
func partly(m machine) string {
	if m.Share == 1 {
		return ""
	}
	return fmt.Sprintf(", at %g of the full sizes", m.Share)
}

// verdicts are how fencepost stands to each record: to another's, or else to its own first one. Nil where nothing is compared.
func verdicts(records []record) []string {
	texts := make([]string, len(records))
	any := false
	for i, r := range records {
		ratio, to := 0.0, ""
		switch {
		case r.peer != fencepost:
			for _, ours := range records {
				if ours.peer == fencepost && (ratio == 0 || ours.variant == r.variant) {
					ratio = ours.ratios[r.peer]
				}
			}
		case r.variant != records[0].variant:
			ratio, to = r.ratios[records[0].variant], " "+records[0].variant
		}
		if ratio > 0 {
			texts[i], any = fmt.Sprintf("%.2f ×%s", ratio, to), true
		}
	}
	if !any {
		return nil
	}
	return texts
}

// machines says where the runs were made.
func machines(all *results) string {
	if len(all.machines) == 0 {
		return "Not measured yet.\n"
	}
	var b strings.Builder
	for _, m := range all.machines {
		fmt.Fprintf(&b, "- `%s`: %s, %d cores, %d GB of memory, %s, %s; %g of the full sizes, %d rounds. PostgreSQL with %s.\n",
			m.Run, m.CPU, m.Cores, (m.Memory+1<<29)>>30, m.System, m.Go, m.Share, m.Rounds, strings.Join(m.Settings, ", "))
	}
	return b.String()
}
