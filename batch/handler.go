package batch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A Row is a row to process.
type Row[T any] struct {
	// Batch is the key of its batch, and Number its place there, from 1.
	Batch  string
	Number int
	Value  T
	// Message is what the row became. Message.Key, and (Message.ID, Message.Epoch), are what to hand downstream.
	Message outbox.Message
}

// Handler makes the handler of a sender out of a function that processes one row. It returns the identifier of what the row became, which is kept with
// the settlement (at most 4 KiB of text, and may be empty), or an error, which counts as that of any handler: tried again by the policy, unless it is wrapped by
// outbox.Permanent and its like. What came of the row is the sender's to record; the function has no way to. A message that is no row of
// a batch, or does not decode, is dead at once; rows that were stored are not checked by the rules again. An identifier that cannot be kept makes the row dead,
// although it was processed. The other fields of the handler, such as Timeout and Reconcile, are the caller's to set.
func Handler[T any](rows *Rows[T], process func(context.Context, Row[T]) (identifier string, err error)) sender.Handler {
	return sender.Handler{DoResult: func(ctx context.Context, m outbox.Message) (string, error) {
		row := Row[T]{Message: m}
		slash := strings.LastIndexByte(m.Key, '/')
		number, err := strconv.Atoi(m.Key[slash+1:])
		if slash < 1 || err != nil || number < 1 {
			return "", outbox.Permanent(errors.New("is no row of a batch: its key does not end with a number"))
		}
		row.Batch, row.Number = m.Key[:slash], number
		if row.Value, err = decode[T](m.Payload); err != nil {
			return "", outbox.Permanent(numbered(err, number))
		}
		identifier, err := process(ctx, row)
		if err != nil {
			return "", err
		}
		bounds.CheckText(identifier, bounds.Reason, func(problem string) { err = errors.New(problem) })
		if err != nil {
			return "", outbox.Permanent(fmt.Errorf("row %d was processed, but its identifier %w", number, err))
		}
		return identifier, nil
	}}
}
