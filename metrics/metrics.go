package metrics

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost-go/fencepost/outbox"
)

// Config lists the values that labels may take. All others are shown as "other".
type Config struct {
	// Consumers that this process enqueues for or performs the messages of.
	Consumers []Consumer
	// Kinds that they have.
	Kinds []string
}

// A Consumer is who performs effects and where.
type Consumer struct{ Name, Target string }

const other = "other"

// buckets suit a push in milliseconds as well as a report in minutes.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900}

// New makes an observer and registers its metrics, all or none of them. The registerer may be nil: then nothing is registered. For two boxes
// in one process wrap it by prometheus.WrapRegistererWith for each, so that a label tells them apart. It returns an error for a name that no label can hold (outbox.ErrInvalid)
// and that of the registerer.
func New(registerer prometheus.Registerer, config Config) (*outbox.Observer, error) {
	shown, err := newShown(config)
	if err != nil {
		return nil, fmt.Errorf("metrics: new: %w", err)
	}
	e, s := newEvents(shown), newStanding(shown)
	if registerer != nil {
		if err := registerer.Register(append(e.collectors, s)); err != nil {
			return nil, fmt.Errorf("metrics: new: %w", err)
		}
	}
	observer := e.observer()
	observer.Measured = s.measured
	return observer, nil
}

// shown are the values that labels take.
type shown struct {
	consumers map[Consumer]bool
	kinds     map[string]bool
}

func newShown(config Config) (shown, error) {
	s := shown{map[Consumer]bool{}, map[string]bool{}}
	for _, c := range config.Consumers {
		if !utf8.ValidString(c.Name) || !utf8.ValidString(c.Target) {
			return s, &outbox.InvalidError{Field: "Consumers", Problem: "has one that is not UTF-8"}
		}
		s.consumers[c] = true
	}
	for _, kind := range config.Kinds {
		if !utf8.ValidString(kind) {
			return s, &outbox.InvalidError{Field: "Kinds", Problem: "has one that is not UTF-8"}
		}
		s.kinds[kind] = true
	}
	return s, nil
}

func (s shown) consumer(name, target string) (string, string) {
	if s.consumers[Consumer{name, target}] {
		return name, target
	}
	return other, other
}

func (s shown) kind(kind string) string {
	if s.kinds[kind] {
		return kind
	}
	return other
}

// lane gives the label values of a lane, and more.
func (s shown) lane(consumer, target, kind string, more ...string) []string {
	consumer, target = s.consumer(consumer, target)
	return append([]string{consumer, target, s.kind(kind)}, more...)
}

func (s shown) message(m outbox.Message, more ...string) []string {
	return s.lane(m.Consumer, m.Target, m.Kind, more...)
}

var laneLabels = []string{"consumer", "target", "kind"}

// collectors are registered as one.
type collectors []prometheus.Collector

// Describe implements prometheus.Collector.
func (c collectors) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range c {
		one.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (c collectors) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range c {
		one.Collect(metrics)
	}
}

const namespace = "fencepost"

func keep[C prometheus.Collector](all *collectors, one C) C {
	*all = append(*all, one)
	return one
}

func (c *collectors) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return keep(c, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (c *collectors) counter(name, help string) prometheus.Counter {
	return keep(c, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
}

func (c *collectors) gauge(name, help string) prometheus.Gauge {
	return keep(c, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
}

func (c *collectors) seconds(name, help string, labels ...string) *prometheus.HistogramVec {
	return keep(c, prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels))
}

// events count what happens in this process.
type events struct {
	shown
	collectors
	enqueued, leased, settled, lost, released, retries, dead, purged *prometheus.CounterVec
	handlers, rescans                                                *prometheus.HistogramVec
	listeners, janitorSuccess                                        prometheus.Gauge
	janitorFailures, contained                                       prometheus.Counter
}

func newEvents(shown shown) *events {
	lane := func(more ...string) []string { return append(laneLabels[:len(laneLabels):len(laneLabels)], more...) }
	e := &events{shown: shown}
	e.enqueued = e.counters("enqueued_total",
		"Effects enqueued, by status. Recorded ones count although their transaction may still be rolled back.", lane("status")...)
	e.leased = e.counters("leased_total", "Messages leased.", lane()...)
	e.settled = e.counters("settled_total",
		"Settles that were answered, by the outcome of the handler and the status of the settle.", lane("outcome", "status")...)
	e.lost = e.counters("leases_lost_total", "Leases that a renewal or a settle found gone.", lane()...)
	e.released = e.counters("released_total", "Leases given back unspent.", lane()...)
	e.retries = e.counters("retries_total", "Messages that were to be tried again later.", lane()...)
	e.dead = e.counters("dead_total",
		"Messages that died, by cause, at a settle or at a lease. A death whose answer was lost may count twice.", lane("cause")...)
	e.handlers = e.seconds("handler_seconds", "How long handlers took, whatever came of it.", lane()...)
	e.rescans = e.seconds("rescan_seconds", "How long senders took to look at the lanes of a consumer from the front.", "consumer", "target")
	e.listeners = e.gauge("listeners", "Listening connections of this process that are up.")
	e.purged = e.counters("purged_total", "Messages that the janitor of this process removed, by the state they had ended in.", "state")
	e.janitorSuccess = e.gauge("janitor_last_success_timestamp_seconds",
		"When the janitor of this process last purged without an error; 0 before it first did. The latest of all processes counts.")
	e.janitorFailures = e.counter("janitor_failures_total", "Ticks of the janitor of this process that failed, if only in part.")
	e.contained = e.counter("contained_total",
		"Panics and nonsense of the application's observers, backoffs and redactors that were passed by.")
	return e
}

func (e *events) observer() *outbox.Observer {
	return &outbox.Observer{
		Enqueued: func(_ context.Context, effects []outbox.Effect, receipts []outbox.Receipt) {
			for i, effect := range effects {
				e.enqueued.WithLabelValues(e.lane(effect.Consumer, effect.Target, effect.Kind, string(receipts[i].Status))...).Inc()
			}
		},
		Leased: func(_ context.Context, messages []outbox.Message) {
			for _, m := range messages {
				e.leased.WithLabelValues(e.message(m)...).Inc()
			}
		},
		Settled: func(_ context.Context, m outbox.Message, outcome outbox.Outcome, result outbox.Result) {
			e.settled.WithLabelValues(e.message(m, outcome.Verdict().String(), string(result.Status))...).Inc()
		},
		Retried: func(_ context.Context, m outbox.Message, _ outbox.Outcome, _ time.Duration) {
			e.retries.WithLabelValues(e.message(m)...).Inc()
		},
		Dead: func(_ context.Context, burial outbox.Burial) {
			e.dead.WithLabelValues(e.message(burial.Message, string(burial.Cause))...).Inc()
		},
		LeaseLost: func(_ context.Context, m outbox.Message) { e.lost.WithLabelValues(e.message(m)...).Inc() },
		GivenBack: func(_ context.Context, messages []outbox.Message) {
			for _, m := range messages {
				e.released.WithLabelValues(e.message(m)...).Inc()
			}
		},
		HandlerDone: func(_ context.Context, m outbox.Message, _ outbox.Outcome, took time.Duration) {
			e.handlers.WithLabelValues(e.message(m)...).Observe(took.Seconds())
		},
		Rescan: func(_ context.Context, c *outbox.Consumer, took time.Duration) {
			e.rescans.WithLabelValues(e.consumerLabels(c)...).Observe(took.Seconds())
		},
		Listening: func(_ context.Context, up bool) {
			if up {
				e.listeners.Inc()
			} else {
				e.listeners.Dec()
			}
		},
		Purged: func(_ context.Context, state outbox.State, count int) {
			e.purged.WithLabelValues(string(state)).Add(float64(count))
		},
		JanitorDone: func(_ context.Context, at time.Time, err error) {
			if err != nil {
				e.janitorFailures.Inc()
				return
			}
			e.janitorSuccess.Set(seconds(at))
		},
		Contained: func(string, any) { e.contained.Inc() },
	}
}

func (e *events) consumerLabels(c *outbox.Consumer) []string {
	name, target := e.consumer(c.Name(), c.Target())
	return []string{name, target}
}

// seconds is an instant as Prometheus has it.
func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
