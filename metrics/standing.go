package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost-go/fencepost/outbox"
)

// standing is what stands in the database, as it was last measured. A scrape gets one picture whole.
type standing struct {
	shown
	queue, oldest, moreLanes, parked, undelivered, pauses, snapshot, deadRows, measuredAt *prometheus.Desc

	mu      sync.Mutex
	lanes   map[lane]tally // all that ever were, so that what is gone becomes zero and no gap
	picture atomic.Pointer[[]prometheus.Metric]
}

// A lane is one by its labels: all tenants and priorities together.
type lane struct{ consumer, target, kind string }

type tally struct {
	due, deferred, leased, parked int64
	oldest                        time.Duration
}

func newStanding(shown shown) *standing {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &standing{
		shown: shown,
		lanes: map[lane]tally{},
		queue: desc("queue_messages",
			"Pending messages: due and free, deferred to a later time, or leased. Counting stops at 10,000 in each lane (tenant and priority), earliest due first.",
			append(laneLabels[:3:3], "state")...),
		oldest: desc("queue_oldest_age_seconds", "How long ago the earliest pending message came due, whether leased or not; 0 when none has.", laneLabels...),
		moreLanes: desc("queue_more_lanes",
			"1 when there are more than 1,000 lanes (consumer, target, kind, tenant, priority), of which the others are not counted."),
		parked:      desc("parked_messages", "Messages that wait for an operator to resolve them. Counting stops at 10,000 in all.", laneLabels...),
		undelivered: desc("undelivered_messages", "Messages that are dead, cancelled or expired and not yet purged. Counting stops at 10,000 of each.", "state"),
		pauses:      desc("pauses", "Kill switches that are on, by mode.", "mode"),
		snapshot:    desc("oldest_snapshot_seconds", "Age of the oldest transaction that keeps finished rows from being cleaned up."),
		deadRows:    desc("queue_dead_rows", "Finished rows of the queue that are not cleaned up yet, by the server's estimate."),
		measuredAt:  desc("measured_timestamp_seconds", "When the janitor of this process last measured the database, by the database's clock."),
	}
}

// Describe implements prometheus.Collector.
func (s *standing) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		s.queue, s.oldest, s.moreLanes, s.parked, s.undelivered, s.pauses, s.snapshot, s.deadRows, s.measuredAt,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *standing) Collect(metrics chan<- prometheus.Metric) {
	if picture := s.picture.Load(); picture != nil {
		for _, metric := range *picture {
			metrics <- metric
		}
	}
}

func (s *standing) measured(_ context.Context, stats outbox.Stats, pauses []outbox.Pause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(stats)
	var picture []prometheus.Metric
	add := func(desc *prometheus.Desc, value float64, labels ...string) {
		picture = append(picture, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...))
	}
	for l, t := range s.lanes {
		labels := []string{l.consumer, l.target, l.kind}
		add(s.queue, float64(t.due), append(labels[:3:3], "due")...)
		add(s.queue, float64(t.deferred), append(labels[:3:3], "deferred")...)
		add(s.queue, float64(t.leased), append(labels[:3:3], "leased")...)
		add(s.oldest, t.oldest.Seconds(), labels...)
		add(s.parked, float64(t.parked), labels...)
	}
	more := 0.0
	if stats.MoreLanes {
		more = 1
	}
	add(s.moreLanes, more)
	add(s.undelivered, float64(stats.Dead), string(outbox.StateDead))
	add(s.undelivered, float64(stats.Cancelled), string(outbox.StateCancelled))
	add(s.undelivered, float64(stats.Expired), string(outbox.StateExpired))
	modes := map[outbox.PauseMode]int{}
	for _, pause := range pauses {
		modes[pause.Mode]++
	}
	add(s.pauses, float64(modes[outbox.PauseLeasing]), "leasing")
	add(s.pauses, float64(modes[outbox.PauseCancel]), "cancel")
	add(s.snapshot, stats.Health.OldestSnapshot.Seconds())
	add(s.deadRows, float64(stats.Health.DeadRows))
	add(s.measuredAt, seconds(stats.Health.Now))
	s.picture.Store(&picture)
}

// count adds up the lanes that have the same labels.
func (s *standing) count(stats outbox.Stats) {
	for l := range s.lanes {
		s.lanes[l] = tally{}
	}
	at := func(consumer, target, kind string) lane {
		consumer, target = s.consumer(consumer, target)
		return lane{consumer, target, s.kind(kind)}
	}
	for _, c := range stats.Lanes {
		l := at(c.Consumer, c.Target, c.Kind)
		t := s.lanes[l]
		s.lanes[l] = tally{t.due + c.Due, t.deferred + c.Deferred, t.leased + c.Leased, t.parked, max(t.oldest, c.Age)}
	}
	for _, c := range stats.Parked {
		l := at(c.Consumer, c.Target, c.Kind)
		t := s.lanes[l]
		t.parked += c.Parked
		s.lanes[l] = t
	}
}
