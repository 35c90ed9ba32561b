package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/bench/contest"
	"github.com/fencepost-go/fencepost/bench/peers"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 100}, 3}} {
		given := slices.Clone(c.values)
		if got := median(c.values); got != c.want || !slices.Equal(given, c.values) {
			t.Errorf("median of %v is %v (now %v), want %v", given, got, c.values, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = float64(i + 1)
	}
	for percent, want := range map[int]float64{0: 1, 50: 100, 95: 190, 99: 198, 100: 200} {
		if got := percentile(values, percent); got != want {
			t.Errorf("percentile %d is %v, want %v", percent, got, want)
		}
	}
	if got := percentile(values[:1], 99); got != 1 {
		t.Errorf("of one value it is %v", got)
	}
}

// sample has rates whose medians are 400 and 100 while the median of the pairs is 5.
func sample() report {
	r := report{server: "18.4", rounds: 3, about: "1000 messages"}
	for round, ours := range []float64{400, 300, 500} {
		r.add(fencepost, "", "fast", figure{"rate", ours}, figure{"wal_bytes", 450})
		r.add("river", "", "slow", figure{"rate", []float64{80, 100, 100}[round]}, figure{"wal_bytes", 2440})
	}
	return r
}

// parsed is what a reader of the JSON sees, by the name of the row.
func parsed(t *testing.T, r report) map[string]map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := r.print(&out, "W1", true); err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]any{}
	for line := range strings.Lines(out.String()) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		variant, _ := row["variant"].(string)
		rows[label(row["peer"].(string), variant)] = row
	}
	return rows
}

func TestJSON(t *testing.T) {
	rows := parsed(t, sample())
	ours, river := rows["fencepost"], rows["river"]
	if ours["workload"] != "W1" || ours["rate"] != 400.0 || ours["wal_bytes"] != 450.0 || ours["ratio_vs_fencepost"] != 1.0 || ours["settings"] != "fast" {
		t.Errorf("fencepost's row is %v", ours)
	}
	if ratios := ours["ratios"].(map[string]any); !maps.Equal(ratios, map[string]any{"river": 5.0}) {
		t.Errorf("fencepost's ratios are %v: the median of the pairs is 5", ratios)
	}
	if river["rate"] != 100.0 || river["ratio_vs_fencepost"] != 0.2 || river["ratios"] != nil {
		t.Errorf("river's row is %v", river)
	}
}

func TestVariants(t *testing.T) {
	var r report
	r.add(fencepost, "control", "", figure{"rate", 100})
	r.add("river", "control", "", figure{"rate", 20})
	r.add(fencepost, "held", "", figure{"rate", 90})
	r.add("river", "held", "", figure{"rate", 5})
	r.add("floor", "", "", figure{"rate", 80})
	rows := parsed(t, r)
	for name, want := range map[string]map[string]any{
		"fencepost control": {"river": 5.0, "floor": 1.25},
		"fencepost held":    {"river": 18.0, "floor": 1.125, "control": 0.9},
		"river held":        {"control": 0.25},
	} {
		if got := rows[name]["ratios"].(map[string]any); !maps.Equal(got, want) {
			t.Errorf("ratios of %s are %v, want %v", name, got, want)
		}
	}
	if rows["river held"]["ratio_vs_fencepost"] != 5.0/90 || rows["floor"]["ratio_vs_fencepost"] != 0.8 {
		t.Errorf("rows are %v", rows)
	}
}

func TestLatenciesAreTurnedOver(t *testing.T) {
	r := report{compared: []string{"p50_ms", "p99_ms"}, lessIsBetter: true}
	r.add(fencepost, "", "", figure{"p50_ms", 1}, figure{"p99_ms", 4})
	r.add("river", "", "", figure{"p50_ms", 3}, figure{"p99_ms", 10})
	rows := parsed(t, r)
	if got := rows["fencepost"]["ratios"].(map[string]any); !maps.Equal(got, map[string]any{"river": 3.0, "river p99_ms": 2.5}) {
		t.Errorf("ratios are %v", got)
	}
	if got := rows["river"]["ratio_vs_fencepost"].(float64); math.Abs(got-1.0/3) > 1e-9 {
		t.Errorf("river's ratio is %v", got)
	}
}

func TestTable(t *testing.T) {
	r := sample()
	r.add(fencepost, "listen", "fast", figure{"rate", 200}, figure{"p50_us", 1.234})
	var out bytes.Buffer
	if err := r.print(&out, "W1", false); err != nil {
		t.Fatal(err)
	}
	const want = `                    messages/s  wal bytes  p50 µs       fencepost is
         fencepost         400        450                           
             river         100       2440                     5.00 ×
  fencepost listen         200               1.23  0.50 of fencepost

PostgreSQL 18.4; medians of 3 rounds; 1000 messages. CPU and WAL are a message's.
fencepost: fast
river: slow
fencepost listen: fast
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOthers(t *testing.T) {
	for _, c := range []contest.Contender{&peers.Floor{}, &peers.Pgbench{}, &peers.River{}, &peers.Watermill{}, peers.Graphile(), peers.PgBoss()} {
		if !slices.Contains(others, c.Name()) {
			t.Errorf("--peers knows no %s", c.Name())
		}
	}
}

func TestParse(t *testing.T) {
	chosen, o, err := parse([]string{"W1", "--peers", "river,floor", "--share", "0.1", "--json"})
	if err != nil || len(chosen) != 1 || chosen[0].name != "W1" || !slices.Equal(o.peers, []string{"river", "floor"}) || o.share != 0.1 || !o.json || o.rounds != 3 {
		t.Errorf("got %v, %+v, %v", chosen, o, err)
	}
	for _, refused := range [][]string{{"W0"}, {"--peers", "rivers"}, {"--share", "2"}, {"--rounds", "0"}, {"--share", "0"}} {
		if _, _, err := parse(refused); err == nil {
			t.Errorf("%v is accepted", refused)
		}
	}
	if chosen, _, err := parse(nil); err != nil || len(chosen) != len(workloads) {
		t.Errorf("by default %d workloads run, %v", len(chosen), err)
	}
}
