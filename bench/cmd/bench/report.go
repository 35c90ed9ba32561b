package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/fencepost-go/fencepost/bench/contest"
)

const fencepost = "fencepost"

// A report is what came of a workload.
type report struct {
	server   string
	messages int
	lines    []*line
}

// A line is one contender's.
type line struct {
	peer, settings string
	usages         []contest.Usage
}

func (r *report) add(peer, settings string, usage contest.Usage) {
	at := slices.IndexFunc(r.lines, func(l *line) bool { return l.peer == peer })
	if at < 0 {
		at = len(r.lines)
		r.lines = append(r.lines, &line{peer: peer, settings: settings})
	}
	r.lines[at].usages = append(r.lines[at].usages, usage)
}

// median is that of one figure of all rounds.
func median[T cmp.Ordered](l *line, of func(contest.Usage) T) T {
	values := make([]T, len(l.usages))
	for i, u := range l.usages {
		values[i] = of(u)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (l *line) rate() float64 { return median(l, contest.Usage.Rate) }

// against is the median of one's share of another, each round's pair for itself: a machine is never quiet, and its moods pass.
func (l *line) against(other *line) float64 {
	shares := make([]float64, min(len(l.usages), len(other.usages)))
	for i := range shares {
		shares[i] = l.usages[i].Rate() / other.usages[i].Rate()
	}
	slices.Sort(shares)
	return shares[len(shares)/2]
}

// A record is a line in JSON.
type record struct {
	Workload  string             `json:"workload"`
	Peer      string             `json:"peer"`
	Rate      float64            `json:"rate"`
	Ratio     float64            `json:"ratio_vs_fencepost"`
	Ratios    map[string]float64 `json:"ratios,omitempty"` // fencepost's, against each other one
	ClientCPU float64            `json:"client_cpu_us_per_message"`
	ServerCPU float64            `json:"server_cpu_us_per_message"`
	WAL       float64            `json:"wal_bytes_per_message"`
	Messages  int                `json:"messages"`
	Rounds    int                `json:"rounds"`
	Server    string             `json:"postgresql"`
	Settings  string             `json:"settings"`
}

func (r report) records(workload string) []record {
	ours := r.lines[slices.IndexFunc(r.lines, func(l *line) bool { return l.peer == fencepost })]
	var records []record
	for _, l := range r.lines {
		micros := func(of func(contest.Usage) time.Duration) float64 {
			return float64(median(l, func(u contest.Usage) time.Duration { return u.Each(of(u)) })) / float64(time.Microsecond)
		}
		rec := record{
			Workload: workload, Peer: l.peer, Rate: l.rate(), Ratio: l.against(ours),
			ClientCPU: micros(func(u contest.Usage) time.Duration { return u.Client }),
			ServerCPU: micros(func(u contest.Usage) time.Duration { return u.Server }),
			WAL:       median(l, func(u contest.Usage) float64 { return float64(u.WAL) / float64(u.Messages) }),
			Messages:  r.messages, Rounds: len(l.usages), Server: r.server, Settings: l.settings,
		}
		if l == ours {
			rec.Ratios = map[string]float64{}
			for _, other := range r.lines {
				if other != ours {
					rec.Ratios[other.peer] = ours.against(other)
				}
			}
		}
		records = append(records, rec)
	}
	return records
}

func (r report) print(w io.Writer, workload string, asJSON bool) error {
	records := r.records(workload)
	if asJSON {
		encoder := json.NewEncoder(w)
		for _, rec := range records {
			if err := encoder.Encode(rec); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\tmessages/s\tfencepost is\tclient CPU µs\tserver CPU µs\tWAL bytes\t\n")
	for _, rec := range records {
		times := ""
		if rec.Peer != fencepost {
			times = fmt.Sprintf("%.2f ×", records[0].Ratios[rec.Peer])
		}
		fmt.Fprintf(table, "%s\t%.0f\t%s\t%.1f\t%.1f\t%.0f\t\n", rec.Peer, rec.Rate, times, rec.ClientCPU, rec.ServerCPU, rec.WAL)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nPostgreSQL %s; CPU and WAL are a message's; medians of %d rounds of %d messages.\n", r.server, records[0].Rounds, r.messages)
	for _, rec := range records {
		_, err = fmt.Fprintf(w, "%s: %s\n", rec.Peer, rec.Settings)
	}
	return err
}
