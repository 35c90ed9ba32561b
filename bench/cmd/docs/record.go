package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fencepost-go/fencepost/bench/contest"
)

// A record is what one contender, or one variant of a workload, came to: a line of a run.
type record struct {
	workload, peer, variant     string
	settings, about, postgresql string
	figures                     map[string]float64
	ratios                      map[string]float64 // by the name of what it is compared with
}

// A machine is the first line of a run: where it was made, and how.
type machine struct {
	contest.Machine
	Share  float64 `json:"share"`
	Rounds int     `json:"rounds"`
	Run    string  `json:"-"` // the file's name
}

// results are the runs of a folder.
type results struct {
	machines []machine
	records  []record
	from     map[string]machine // by workload
}

// readResults reads the runs in the order of their names. A workload of a later one replaces that of an earlier one.
func readResults(folder string) (*results, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	all := &results{from: map[string]machine{}}
	for _, name := range names {
		m, records, err := readRun(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range records {
			all.records = slices.DeleteFunc(all.records, func(old record) bool { return old.workload == r.workload && all.from[old.workload].Run != m.Run })
			all.from[r.workload] = m
		}
		all.records = append(all.records, records...)
		all.machines = append(all.machines, m)
	}
	all.machines = slices.DeleteFunc(all.machines, func(m machine) bool {
		return !slices.ContainsFunc(all.records, func(r record) bool { return all.from[r.workload].Run == m.Run })
	})
	return all, nil
}

func readRun(name string) (m machine, records []record, err error) {
	file, err := os.Open(name)
	if err != nil {
		return m, nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.CPU == "" {
				return m, nil, fmt.Errorf("the first line does not tell the machine: %v", err)
			}
			m.Run = strings.TrimSuffix(filepath.Base(name), ".jsonl")
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(lines.Bytes(), &fields); err != nil {
			return m, nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		records = append(records, newRecord(fields))
	}
	return m, records, lines.Err()
}

// newRecord takes every number for a figure.
func newRecord(fields map[string]any) record {
	r := record{figures: map[string]float64{}, ratios: map[string]float64{}}
	for name, to := range map[string]*string{
		"workload": &r.workload, "peer": &r.peer, "variant": &r.variant, "settings": &r.settings, "about": &r.about, "postgresql": &r.postgresql,
	} {
		*to, _ = fields[name].(string)
	}
	ratios, _ := fields["ratios"].(map[string]any)
	numbers(r.figures, fields)
	numbers(r.ratios, ratios)
	return r
}

func numbers(to map[string]float64, fields map[string]any) {
	for name, value := range fields {
		if number, ok := value.(float64); ok {
			to[name] = number
		}
	}
}

// of are a workload's records, in the order of the run.
func (all *results) of(workload string) []record {
	var found []record
	for _, r := range all.records {
		if r.workload == workload {
			found = append(found, r)
		}
	}
	return found
}

// noted are peers whose names do not say enough.
var noted = map[string]string{"watermill": "watermill (no lease)"}

// labels name the records of a workload: by what tells them apart.
func labels(records []record) []string {
	peers, variants := map[string]bool{}, map[string]bool{}
	for _, r := range records {
		peers[r.peer], variants[r.variant] = true, true
	}
	names := make([]string, len(records))
	for i, r := range records {
		r.peer = cmp.Or(noted[r.peer], r.peer)
		switch {
		case len(variants) == 1:
			names[i] = r.peer
		case len(peers) == 1 && r.variant != "":
			names[i] = r.variant
		default:
			names[i] = strings.TrimSpace(r.peer + " " + r.variant)
		}
	}
	return names
}
