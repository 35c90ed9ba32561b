package outboxtest

import (
	"bytes"
	"context"
	"maps"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// Redeliver delivers a message twice, as happens when a worker dies between performing and settling: the second time under a later lease
// (Attempt and Epoch are one higher) and Unsure. A handler that can Reconcile is asked first that time, and is called again only if it says
// that the message was not performed. It is an error of the test if a delivery fails, if Reconcile does not know, if the results of DoResult
// differ, or if the handler changes the message. Whether the effect happened once is for the test to look at.
//
// The message may be made by hand. The handler's timeout and lease play no part.
func Redeliver(t testing.TB, handler sender.Handler, message outbox.Message) {
	t.Helper()
	do := handler.DoResult
	if do == nil {
		if handler.Do == nil {
			t.Fatal("the handler has neither Do nor DoResult")
		}
		do = func(ctx context.Context, m outbox.Message) (string, error) { return "", handler.Do(ctx, m) }
	}
	message.Attempt, message.Epoch = max(message.Attempt, 1), max(message.Epoch, 1)
	first, again := copied(message), copied(message)
	again.Attempt, again.Epoch, again.Unsure = message.Attempt+1, message.Epoch+1, true
	result, err := do(t.Context(), first)
	if err != nil {
		t.Fatalf("the first delivery failed: %v", err)
	}
	if !bytes.Equal(first.Payload, message.Payload) || !maps.Equal(first.Metadata, message.Metadata) {
		t.Error("the handler changed the payload or the metadata of its message")
	}
	if handler.Reconcile != nil {
		switch became, err := handler.Reconcile(t.Context(), again); {
		case err != nil:
			t.Errorf("Reconcile failed: %v", err)
			return
		case became == sender.Delivered:
			return
		case became != sender.Failed:
			t.Error("Reconcile does not know of the first delivery")
			return
		}
	}
	second, err := do(t.Context(), again)
	if err != nil {
		t.Errorf("the second delivery failed: %v", err)
	} else if second != result {
		t.Errorf("the first delivery gave %q, the second %q", result, second)
	}
}

// copied is the message as one lease gives it: with a payload and metadata of its own.
func copied(m outbox.Message) outbox.Message {
	m.Payload, m.Metadata = append([]byte{}, m.Payload...), maps.Clone(m.Metadata)
	return m
}
