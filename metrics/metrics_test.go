package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var update = flag.Bool("update", false, "write the golden")

var config = Config{Consumers: []Consumer{{"wallets", "phones"}}, Kinds: []string{"charge", "push"}}

// A bench is a box in memory whose observer is scraped.
type bench struct {
	*testing.T
	registry *prometheus.Registry
	rescan   func(context.Context, *outbox.Consumer, time.Duration) // not the box's: how often a sender looks is its own business
	box      *outbox.Box
	wallets  *outbox.Consumer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, registry: prometheus.NewRegistry()}
	observer, err := New(b.registry, config)
	if err != nil {
		t.Fatal(err)
	}
	b.rescan, observer.Rescan = observer.Rescan, nil
	b.box, err = outbox.New(memdb.New(memdb.Config{}), outbox.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if b.wallets, err = b.box.Consumer("wallets", "phones", outbox.Policy{Jitter: outbox.NoJitter}); err != nil {
		t.Fatal(err)
	}
	return b
}

func effect(kind, key string) outbox.Effect {
	return outbox.Effect{Consumer: "wallets", Target: "phones", Kind: kind, Key: key}
}

func (b *bench) enqueue(effects ...outbox.Effect) {
	b.Helper()
	err := memdb.InTx(b.Context(), b.box.Store().(*memdb.Store), b.box, func(tx *memdb.Tx) error {
		_, err := b.box.EnqueueMany(b.Context(), tx, effects)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) lease(kind string) outbox.Message {
	b.Helper()
	messages, err := b.box.Lease(b.Context(), b.wallets, outbox.LeaseRequest{Kinds: []string{kind}, Limit: 1, For: time.Minute})
	if err != nil || len(messages) != 1 {
		b.Fatal(messages, err)
	}
	return messages[0]
}

// measure does what a janitor does at each tick.
func (b *bench) measure() {
	b.Helper()
	stats, err := b.box.Stats(b.Context(), outbox.AllTenants)
	if err != nil {
		b.Fatal(err)
	}
	pauses, err := b.box.Pauses(b.Context(), outbox.AllTenants)
	if err != nil {
		b.Fatal(err)
	}
	b.box.Observer().Measured(b.Context(), stats, pauses)
}

// What a scrape gives after a little of everything, on a clock that stands at 2000-01-02 and moves only while handlers work.
func TestScrape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		b := newBench(t)
		b.enqueue(effect("push", "delivered"), effect("push", "unknown"), effect("charge", "fails"), effect("charge", "permanent"),
			effect("push", "delivered"))
		s, err := sender.New(b.box, b.wallets, sender.Config{Slots: 4, Listen: true, Handlers: sender.Handlers{
			"push": {Do: func(_ context.Context, m outbox.Message) error {
				time.Sleep(20 * time.Millisecond)
				if m.Key == "unknown" {
					return outbox.Unknown(errors.New("no answer"))
				}
				return nil
			}},
			"charge": {Do: func(_ context.Context, m outbox.Message) error {
				time.Sleep(2 * time.Second)
				if m.Key == "permanent" {
					return outbox.Permanent(errors.New("closed"))
				}
				return errors.New("down")
			}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Run(ctx) }()
		synctest.Wait() // it listens

		b.enqueue(effect("refund", "given back"), effect("refund", "lost"), outbox.Effect{Consumer: "mails", Target: "smtp", Kind: "push", Key: "elsewhere", Tenant: "acme"})
		synctest.Wait() // it has looked, and looks again only when time passes
		if err := b.box.Release(t.Context(), b.lease("refund")); err != nil {
			t.Fatal(err)
		}
		b.lease("refund")
		lost := b.lease("refund")
		b.box.Store().(*memdb.Store).Age(time.Hour)
		b.lease("refund")
		if result, err := b.box.Settle(t.Context(), b.wallets, outbox.Scope{}, lost, outbox.Delivered()); err != nil || result.Status != outbox.StaleLease {
			t.Fatal(result, err)
		}

		by := outbox.By{Actor: "ann", Reason: "ledger is down"}
		if _, err := b.box.Pause(t.Context(), outbox.AllTenants, outbox.Everything, outbox.PauseLeasing, by); err != nil {
			t.Fatal(err)
		}
		b.measure()
		b.rescan(t.Context(), b.wallets, 3*time.Millisecond)
		observer := b.box.Observer()
		observer.Purged(t.Context(), outbox.StateDelivered, 7)
		observer.JanitorDone(t.Context(), time.Now(), nil)
		observer.JanitorDone(t.Context(), time.Now().Add(time.Hour), errors.New("statement timeout"))
		observer.Contained("Policy.Backoff", "panicked")

		b.compare("testdata/scrape.txt")
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// compare compares what a scrape gives with the golden.
func (b *bench) compare(golden string) {
	b.Helper()
	if *update {
		if err := prometheus.WriteToTextfile(golden, b.registry); err != nil {
			b.Fatal(err)
		}
	}
	want, err := os.Open(golden)
	if err != nil {
		b.Fatal(err)
	}
	defer want.Close()
	if err := testutil.GatherAndCompare(b.registry, want); err != nil {
		b.Error(err)
	}
	problems, err := testutil.GatherAndLint(b.registry)
	if err != nil || len(problems) > 0 {
		b.Errorf("lint: %v, %v", problems, err)
	}
}

// However many consumers, kinds, tenants and keys there are, the series stay as many.
// Shows: S3.8
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	count := func() int {
		b.measure()
		families, err := b.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, family := range families {
			n += len(family.Metric)
		}
		return n
	}
	strange := func(i int) outbox.Effect {
		text := fmt.Sprint("strange ", i, "\n\"")
		return outbox.Effect{Tenant: text, Consumer: text, Target: text, Kind: text, Key: text}
	}
	b.enqueue(strange(0))
	before := count()
	for i := range 100 {
		b.enqueue(strange(i + 1))
	}
	if after := count(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
	if got := b.values("fencepost_enqueued_total", "consumer"); !maps.Equal(got, map[string]float64{"other": 101}) {
		t.Errorf("counted %v", got)
	}
}

// values adds up the series of a metric by one of its labels.
func (b *bench) values(name, label string) map[string]float64 {
	b.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.Metric {
			for _, pair := range metric.Label {
				if pair.GetName() == label {
					sums[pair.GetValue()] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
	}
	return sums
}

// A lane that is worked off becomes zero; it is no gap.
func TestWorkedOffLanesAreZero(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	is := func(want map[string]float64) {
		t.Helper()
		b.measure()
		if got := b.values("fencepost_queue_messages", "state"); !maps.Equal(got, want) {
			t.Errorf("shows %v, want %v", got, want)
		}
	}
	is(nil)
	b.enqueue(effect("push", "a"))
	is(map[string]float64{"due": 1, "deferred": 0, "leased": 0})
	if _, err := b.box.Settle(t.Context(), b.wallets, outbox.Scope{}, b.lease("push"), outbox.Delivered()); err != nil {
		t.Fatal(err)
	}
	is(map[string]float64{"due": 0, "deferred": 0, "leased": 0})
}

// Shows: S3.25
func TestNilRegisterer(t *testing.T) {
	t.Parallel()
	observer, err := New(nil, Config{})
	if err != nil {
		t.Fatal(err)
	}
	observer.Enqueued(t.Context(), []outbox.Effect{effect("push", "a")}, []outbox.Receipt{{Status: outbox.Recorded}})
	observer.Measured(t.Context(), outbox.Stats{}, nil)
	observer.JanitorDone(t.Context(), time.Now(), nil)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for name, config := range map[string]Config{
		"Consumers": {Consumers: []Consumer{{"a", "\xff"}}},
		"Kinds":     {Kinds: []string{"\xff"}},
	} {
		var invalid *outbox.InvalidError
		if _, err := New(registry, config); !errors.As(err, &invalid) || invalid.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(registry, config); err != nil {
		t.Fatal(err)
	}
	var already prometheus.AlreadyRegisteredError
	if _, err := New(registry, config); !errors.As(err, &already) {
		t.Errorf("twice: %v", err)
	}
	both := prometheus.NewRegistry()
	for _, box := range []string{"first", "second"} {
		if _, err := New(prometheus.WrapRegistererWith(prometheus.Labels{"box": box}, both), config); err != nil {
			t.Errorf("the %s box: %v", box, err)
		}
	}
}

var (
	fqName   = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)
	inQuery  = regexp.MustCompile(`\bfencepost_\w+\b`)
	suffix   = regexp.MustCompile(`_(bucket|sum|count)$`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	matcher  = regexp.MustCompile(`(\w+)=~?\\?"`)
)

// The dashboard and the alerts ask for what there is, and the dashboard for all of it.
func TestDashboardAndAlerts(t *testing.T) {
	t.Parallel()
	shown, labels := map[string]bool{}, map[string]bool{"le": true}
	descs := make(chan *prometheus.Desc)
	registry := newBench(t).registry
	go func() {
		registry.Describe(descs)
		close(descs)
	}()
	for desc := range descs {
		match := fqName.FindStringSubmatch(desc.String())
		shown[match[1]] = false
		for label := range strings.SplitSeq(match[2], ",") {
			labels[label] = true
		}
	}
	for _, name := range []string{"grafana.json", "operations.md"} {
		content, err := os.ReadFile(filepath.Join("../docs", name))
		if err != nil || name == "grafana.json" && !json.Valid(content) {
			t.Fatalf("%s is no JSON, or %v", name, err)
		}
		text := string(content)
		for _, series := range inQuery.FindAllString(text, -1) {
			metric := suffix.ReplaceAllString(series, "")
			if _, ok := shown[metric]; !ok {
				t.Errorf("%s asks for %s, which does not exist", name, series)
			} else if name == "grafana.json" {
				shown[metric] = true
			}
		}
		var asked []string
		for _, match := range grouping.FindAllStringSubmatch(text, -1) {
			asked = append(asked, strings.Split(match[1], ", ")...)
		}
		for _, match := range matcher.FindAllStringSubmatch(text, -1) {
			asked = append(asked, match[1])
		}
		for _, label := range asked {
			if !labels[label] {
				t.Errorf("%s asks for the label %s, which does not exist", name, label)
			}
		}
	}
	for metric, found := range shown {
		if !found {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}
}
