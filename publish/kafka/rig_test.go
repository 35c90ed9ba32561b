package kafkapub_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish/kafka"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// TestMain looks for goroutines that outlive their publishers, senders, clients and clusters.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && code == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "%d goroutines, before there were %d\n", runtime.NumGoroutine(), before)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
	}
	os.Exit(code)
}

// cluster is no Kafka: kfake, which comes with the client, speaks the protocol as Kafka does from memory or a folder. What only a real cluster does (replicas,
// elections, full disks) these tests do not show.
func cluster(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func client(t testing.TB, seeds []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond })}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func publisher(t testing.TB, c *kgo.Client, config kafkapub.Config) *kafkapub.Publisher {
	t.Helper()
	p, err := kafkapub.New(c, config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stored are the records of a topic.
func stored(t testing.TB, c *kfake.Cluster, topic string) []*kgo.Record {
	t.Helper()
	var want int64
	for _, partition := range c.PartitionInfos(topic) {
		want += partition.HighWatermark
	}
	reader := client(t, c.ListenAddrs(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for int64(len(records)) < want {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatal(fetches.Err())
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

// message is one by hand, for the topic that is its target.
func message(target, key string) outbox.Message {
	return outbox.Message{ID: 1, Consumer: "shop", Target: target, Kind: "order.paid", Key: key, Payload: []byte(key), Attempt: 1, Epoch: 1}
}

func perform(ctx context.Context, p *kafkapub.Publisher, m outbox.Message) (string, outbox.Verdict, error) {
	result, err := p.Handler().DoResult(ctx, m)
	return result, outbox.OutcomeOf(err).Verdict(), err
}
