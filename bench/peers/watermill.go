package peers

import (
	"context"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Watermill is the queue schema of github.com/ThreeDotsLabs/watermill-sql. It has no lease: a subscriber holds a transaction, and with it the rows, while
// the handlers of a batch run, one after another.
type Watermill struct{ pool *pgxpool.Pool }

const topic = "charges"

func (*Watermill) Name() string { return "watermill" }
func (*Watermill) Settings() string {
	return "watermill-sql's queue schema on pgx (no lease), SubscribeBatchSize 1,000, DeleteOnAck, a pool of 4"
}

func (w *Watermill) schema() wsql.PostgreSQLQueueSchema {
	return wsql.PostgreSQLQueueSchema{SubscribeBatchSize: chunk, GeneratePayloadType: func(string) string { return "BYTEA" }}
}

func (w *Watermill) Open(ctx context.Context, dsn string) (err error) {
	if w.pool, err = pgxpool.New(ctx, dsn+"&pool_max_conns=4"); err != nil {
		return err
	}
	subscriber, err := w.subscriber()
	if err != nil {
		return err
	}
	return subscriber.SubscribeInitialize(topic)
}

func (w *Watermill) subscriber() (*wsql.Subscriber, error) {
	return wsql.NewSubscriber(wsql.BeginnerFromPgx(w.pool), wsql.SubscriberConfig{
		SchemaAdapter:  w.schema(),
		OffsetsAdapter: wsql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true},
		PollInterval:   10 * time.Millisecond,
	}, watermill.NopLogger{})
}

func (w *Watermill) Fill(ctx context.Context, messages int) error {
	if _, err := w.pool.Exec(ctx, "TRUNCATE "+w.schema().MessagesTable(topic)); err != nil {
		return err
	}
	publisher, err := wsql.NewPublisher(wsql.BeginnerFromPgx(w.pool), wsql.PublisherConfig{SchemaAdapter: w.schema()}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	text := []byte(strings.Repeat("x", payload))
	for left := messages; left > 0; left -= chunk {
		batch := make([]*message.Message, min(left, chunk))
		for i := range batch {
			batch[i] = message.NewMessage(watermill.NewUUID(), text)
		}
		if err := publisher.Publish(topic, batch...); err != nil {
			return err
		}
	}
	return publisher.Close()
}

func (w *Watermill) Drain(ctx context.Context, messages int) error {
	subscriber, err := w.subscriber()
	if err != nil {
		return err
	}
	arrived, err := subscriber.Subscribe(ctx, topic)
	if err != nil {
		return err
	}
	left := newCountdown(messages)
	go func() {
		for m := range arrived {
			m.Ack()
			left.tick()
		}
	}()
	if err := left.wait(ctx); err != nil {
		return err
	}
	return subscriber.Close() // waits for the last batch to be committed
}

func (w *Watermill) Close(context.Context) error {
	w.pool.Close()
	return nil
}
