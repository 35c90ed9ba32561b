package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

func compared(t *testing.T, w guarded, rounds ...[2]string) []verdict {
	t.Helper()
	c := newComparison(w)
	for _, round := range rounds {
		for i, out := range round {
			if err := c.add(i == 1, []byte(out)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c.verdicts()
}

func line(variant string, rate, allocations float64) string {
	return fmt.Sprintf(`{"workload":"machine","cores":2}
{"workload":"W1","peer":"fencepost","variant":%q,"rate":%v,"client_allocs_per_message":%v}
{"workload":"W1","peer":"floor","rate":1}
`, variant, rate, allocations)
}

func TestVerdicts(t *testing.T) {
	// Pairs of 0.9, 0.9 and 2; allocations 1.2 times as many.
	got := compared(t, workloads[0],
		[2]string{line("", 100, 10), line("", 90, 12)}, [2]string{line("", 1000, 10), line("", 900, 12)}, [2]string{line("", 10, 10), line("", 20, 12)})
	if len(got) != 2 {
		t.Fatalf("verdicts: %+v", got)
	}
	if v := got[0]; v.name != "W1 rate" || v.base != 100 || v.head != 90 || v.ratio != 0.9 || v.bad {
		t.Errorf("of the rate: %+v", v)
	}
	if v := got[1]; v.name != "W1 client_allocs_per_message" || math.Abs(v.ratio-10.0/12) > 1e-9 || !v.bad {
		t.Errorf("of the allocations: %+v", v)
	}
	var out bytes.Buffer
	if err := tell(&out, got); err == nil || err.Error() != "worse than the base: W1 client_allocs_per_message" || !strings.Contains(out.String(), "0.83 ×  worse") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := tell(&out, got[:1]); err != nil {
		t.Error(err)
	}
}

func TestSlowerIsWorse(t *testing.T) {
	if got := compared(t, workloads[0], [2]string{line("", 100, 10), line("", 89, 10)}); !got[0].bad || got[1].bad {
		t.Errorf("a rate of 0.89: %+v", got)
	}
	if got := compared(t, workloads[0], [2]string{line("", 100, 0), line("", 0, 0)}); !got[0].bad || !got[1].bad {
		t.Errorf("what is no number passes: %+v", got)
	}
	w6 := func(ms float64) string {
		return fmt.Sprintf(`{"workload":"W6","peer":"fencepost","variant":"1,000","p50_ms":%v}`, ms)
	}
	if got := compared(t, workloads[2], [2]string{w6(10), w6(12)}); len(got) != 1 || got[0].name != "W6 1,000 p50_ms" || !got[0].bad {
		t.Errorf("a longer lease: %+v", got)
	}
	if got := compared(t, workloads[2], [2]string{w6(12), w6(10)}); got[0].bad || got[0].ratio != 1.2 {
		t.Errorf("a shorter lease: %+v", got)
	}
}

func TestWhatOnlyOneMeasuresIsLeftOut(t *testing.T) {
	old := `{"workload":"W1","peer":"fencepost","rate":100}`
	if got := compared(t, workloads[0], [2]string{old, line("", 100, 10)}); len(got) != 1 || got[0].name != "W1 rate" {
		t.Errorf("verdicts: %+v", got)
	}
	if got := compared(t, workloads[0], [2]string{old, line("new", 100, 10)}); len(got) != 0 {
		t.Errorf("another variant: %+v", got)
	}
	if err := tell(&bytes.Buffer{}, nil); err == nil {
		t.Error("nothing compared is a success")
	}
	if err := newComparison(workloads[0]).add(true, []byte(`{"workload":"W2","peer":"fencepost","rate":1}`)); err == nil {
		t.Error("a run of another workload is taken")
	}
}
