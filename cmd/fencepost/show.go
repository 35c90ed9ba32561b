package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newShow() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one message whole, its payload included",
		Long: `Show one message whole, its payload and metadata included: think of who is looking.

A payload that is text is shown with everything escaped that a terminal might act on, another as a hex dump, and a
long one is cut. --json has the exact bytes (payload_base64), and payload_text where they are text.`,
		Example: `  fencepost show 4711
  fencepost show 4711 --json | jq -r .payload_base64 | base64 -d`,
		Args: oneMessage,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	scope := addTenants(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := messageID(cmd, args)
		if err != nil {
			return err
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			details, err := showMessage(ctx, box, scope(), id)
			if err != nil {
				return err
			}
			return output(cmd, newMessageReport(details))
		})
	}
	return cmd
}

// showMessage reads one message.
func showMessage(ctx context.Context, box *outbox.Box, scope outbox.Scope, id int64) (outbox.Details, error) {
	details, err := box.Show(ctx, scope, id)
	if errors.Is(err, outbox.ErrNotFound) {
		return details, notDonef("no message has the id %d; was it purged, or is it another --tenant's?", id)
	}
	if denied(err) {
		return details, fmt.Errorf("this reads content (payload, metadata), which viewers may not; list shows the rest: %w", err)
	}
	return details, err
}

// messageID reads the one argument of a command about one message.
func messageID(cmd *cobra.Command, args []string) (int64, error) {
	ids, err := messageIDs(args)
	if err == nil && len(ids) != 1 {
		err = usagef("%s takes the id of one message; see %s --help", cmd.Name(), cmd.CommandPath())
	}
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

func oneMessage(cmd *cobra.Command, args []string) error {
	_, err := messageID(cmd, args)
	return err
}

func messageIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id <= 0 {
			return nil, usagef("the id of a message is a whole number above 0")
		}
		ids[i] = id
	}
	return ids, nil
}

type messageReport struct {
	messageSummary
	Priority       int16             `json:"priority"`
	MaxAgeSeconds  float64           `json:"max_age_seconds,omitempty"` // absent = none
	ExpiresAt      *time.Time        `json:"expires_at,omitempty"`
	SourcePosition string            `json:"source_position,omitempty"`
	SourceEventID  string            `json:"source_event_id,omitempty"`
	Digest         string            `json:"digest"`
	Worker         string            `json:"worker,omitempty"`
	Result         string            `json:"result,omitempty"`
	Metadata       map[string]string `json:"metadata"`
	PayloadBytes   int               `json:"payload_bytes"`
	PayloadText    string            `json:"payload_text,omitempty"`
	PayloadBase64  []byte            `json:"payload_base64"`
}

func newMessageReport(d outbox.Details) messageReport {
	r := messageReport{
		messageSummary: newMessageSummary(d.Summary),
		Priority:       d.Priority,
		ExpiresAt:      applies(d.ExpiresAt),
		SourceEventID:  d.SourceEventID,
		Digest:         hex.EncodeToString(d.Digest),
		Worker:         d.Worker,
		Result:         d.Result,
		Metadata:       d.Metadata,
		PayloadBytes:   len(d.Payload),
		PayloadBase64:  d.Payload,
	}
	if d.MaxAge != outbox.NoMaxAge {
		r.MaxAgeSeconds = d.MaxAge.Seconds()
	}
	if d.SourcePosition != 0 {
		r.SourcePosition = strconv.FormatInt(d.SourcePosition, 10)
	}
	if utf8.Valid(d.Payload) {
		r.PayloadText = string(d.Payload)
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	return r
}

func (r messageReport) text(p *page) {
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("state", r.state())
	add("consumer", r.Consumer)
	add("target", r.Target)
	add("kind", r.Kind)
	add("tenant", r.Tenant)
	add("key", r.Key)
	add("order key", r.OrderKey)
	add("priority", fmt.Sprint(r.Priority))
	add("attempt", fmt.Sprintf("%d (epoch %s, replays %d)", r.Attempt, r.Epoch, r.Replays))
	add("reason", r.Reason)
	add("result", r.Result)
	add("worker", r.Worker)
	add("created", instant(r.CreatedAt))
	for _, at := range []struct {
		name  string
		value *time.Time
	}{{"due", r.DueAt}, {"leased until", r.LeasedUntil}, {"expires", r.ExpiresAt}, {"settled", r.SettledAt}, {"replayed", r.ReplayedAt}} {
		if at.value != nil {
			add(at.name, instant(*at.value))
		}
	}
	add("source", strings.TrimSpace(r.SourcePosition+" "+r.SourceEventID))
	add("digest", r.Digest)
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		add("metadata "+name, r.Metadata[name])
	}
	add("payload", fmt.Sprintf("%s bytes", thousands(int64(r.PayloadBytes))))
	p.table([]string{"message", r.ID}, rows)
	p.payload(r.PayloadBase64)
}

// payload shows the beginning of a payload below a table.
func (p *page) payload(all []byte) {
	const limit = 4 << 10
	shown := all[:min(len(all), limit)]
	text := string(shown)
	if !utf8.Valid(all) {
		text = hex.Dump(shown)
	}
	for line := range strings.Lines(text) {
		p.linef("  %s", strings.TrimSuffix(line, "\n"))
	}
	if len(shown) < len(all) {
		p.linef("  … cut here; --json has all")
	}
}
