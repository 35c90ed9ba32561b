package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

const (
	// lease is for how long the effects that the killed worker held stay untouched.
	lease = 6 * time.Second
	// callTimeout must be long enough for a busy machine: a call that was performed but not answered in time is a duplicate later.
	callTimeout = 3 * time.Second
)

// A job tells a worker process what to do.
type job struct {
	Name     string    `json:"name"`
	Receiver string    `json:"receiver"`
	Database *database `json:"database"`
}

// Work is the main function of a worker process. It reads its job and performs effects until it is dismissed or its input ends, as it does when
// the demo dies.
func Work(ctx context.Context, input io.Reader) error {
	var j job
	words := json.NewDecoder(input)
	if err := words.Decode(&j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var orphaned atomic.Bool
	go func() {
		var dismissed bool
		orphaned.Store(words.Decode(&dismissed) != nil)
		stop()
	}()
	err := j.work(ctx)
	if orphaned.Load() && j.Database.File != nil {
		err = errors.Join(err, j.Database.drop()) // nobody else is left to do it
	}
	return err
}

func (j job) work(ctx context.Context) error {
	on, err := j.Database.open(ctx)
	if err != nil {
		return err
	}
	defer on.close()
	box, err := newBox(on)
	if err != nil {
		return err
	}
	return j.perform(ctx, box)
}

// perform hands the shop's effects to the receiver until ctx ends.
func (j job) perform(ctx context.Context, box *outbox.Box) error {
	policy := outbox.Policy{InitialDelay: 200 * time.Millisecond, MaxDelay: 2 * time.Second}
	shop, err := box.Consumer(consumer, target, policy)
	if err != nil {
		return err
	}
	s, err := sender.New(box, shop, sender.Config{
		Name:  j.Name,
		Lease: lease,
		Handlers: sender.Handlers{
			kindCharge: {Do: j.deliver, Timeout: callTimeout},
			kindMail:   {Do: j.deliver, Timeout: callTimeout},
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// deliver calls the receiver. It may be called again for the same message, so it hands over the message's key.
func (j job) deliver(ctx context.Context, m outbox.Message) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, j.Receiver+"/"+m.Kind, bytes.NewReader(m.Payload))
	if err != nil {
		return outbox.Permanent(err)
	}
	request.Header.Set("Idempotency-Key", m.Key)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	switch {
	case response.StatusCode < 300:
		return nil
	case response.StatusCode < 500:
		return outbox.Permanent(fmt.Errorf("the receiver answered %s", response.Status))
	default:
		return fmt.Errorf("the receiver answered %s", response.Status)
	}
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
