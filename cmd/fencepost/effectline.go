package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/outbox"
)

// An effectLine is a line of enqueue.
type effectLine struct {
	Tenant         string            `json:"tenant"`
	Consumer       string            `json:"consumer"`
	Target         string            `json:"target"`
	Kind           string            `json:"kind"`
	Key            string            `json:"key"`
	OrderKey       string            `json:"order_key"`
	Priority       int16             `json:"priority"`
	Payload        json.RawMessage   `json:"payload"`
	PayloadText    *string           `json:"payload_text"`
	PayloadBase64  []byte            `json:"payload_base64"`
	Metadata       map[string]string `json:"metadata"`
	Delay          string            `json:"delay"`
	DueAt          time.Time         `json:"due_at"`
	MaxAge         string            `json:"max_age"`
	SourcePosition json.Number       `json:"source_position"` // a number, or a string as the other commands print it
	SourceEventID  string            `json:"source_event_id"`
}

// parseEffect reads a line. What the library judges itself it leaves alone.
func parseEffect(text []byte, defaults outbox.Effect) (outbox.Effect, error) {
	var l effectLine
	if err := l.decode(text); err != nil {
		return outbox.Effect{}, err
	}
	e := outbox.Effect{
		Tenant: l.Tenant, Consumer: cmp.Or(l.Consumer, defaults.Consumer), Target: cmp.Or(l.Target, defaults.Target), Kind: cmp.Or(l.Kind, defaults.Kind),
		Key: l.Key, OrderKey: l.OrderKey, Priority: l.Priority, Metadata: l.Metadata, DueAt: l.DueAt, SourceEventID: l.SourceEventID,
	}
	var err error
	if e.Payload, err = l.payload(); err != nil {
		return e, err
	}
	if e.Delay, err = l.duration("delay", l.Delay, 0); err != nil {
		return e, err
	}
	if e.MaxAge, err = l.duration("max_age", l.MaxAge, outbox.NoMaxAge); err != nil {
		return e, err
	}
	if l.SourcePosition != "" {
		if e.SourcePosition, err = l.SourcePosition.Int64(); err != nil {
			return e, errors.New("source_position is no whole number")
		}
	}
	return e, nil
}

func (l *effectLine) decode(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("is not UTF-8") // which the decoder would mend in silence
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var mistyped *json.UnmarshalTypeError
	switch err := decoder.Decode(l); {
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return fmt.Errorf("%s cannot be a JSON %s", mistyped.Field, mistyped.Value)
	case errors.As(err, &mistyped):
		return errors.New("is no JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("is an unfinished JSON object")
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("holds more than one JSON object")
	}
	return nil
}

func (l *effectLine) payload() ([]byte, error) {
	given, payload := 0, []byte(l.Payload)
	if l.Payload != nil {
		given++
	}
	if l.PayloadText != nil {
		given++
		payload = []byte(*l.PayloadText)
	}
	if l.PayloadBase64 != nil {
		given++
		payload = l.PayloadBase64
	}
	if given > 1 {
		return nil, errors.New("has more than one of payload, payload_text and payload_base64")
	}
	return payload, nil
}

// duration reads a length of time that is longer than zero, or the word none where that means something.
func (*effectLine) duration(field, text string, none time.Duration) (d time.Duration, err error) {
	switch {
	case text == "":
		return 0, nil
	case text == "none" && none != 0:
		return none, nil
	}
	if err := (durationFlag{&d, time.Microsecond, longestAge}).Set(text); err != nil {
		return 0, fmt.Errorf("%s %w", field, err)
	}
	return d, nil
}

// lineError names the line. It is no ErrInvalid: the command line was right, and lines before this one may be stored.
func lineError(number int, err error) error {
	return fmt.Errorf("line %d: %s; correct it and run the command again, what is stored already counts as duplicate", number, err)
}
