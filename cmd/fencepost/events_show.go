package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

func newEventsShow() *cobra.Command {
	var c connection
	var tenant string
	cmd := &cobra.Command{
		Use:   "show EVENT-ID",
		Short: "Show one event whole, its payload included",
		Long: `Show one event whole, its payload and metadata included: think of who is looking. It shows whatever its place in the
stream: also while an older transaction still holds the stream back. An id is unique within its tenant.

A payload that is text is shown with everything escaped that a terminal might act on, another as a hex dump, and a
long one is cut. --json has the exact bytes (payload_base64), and payload_text where they are text.`,
		Example: `  fencepost events show order-77-paid
  fencepost events show order-77-paid --json | jq -r .payload_base64 | base64 -d`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("show takes the id of one event; see %s --help", cmd.CommandPath())
			}
			return nil
		},
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	cmd.Flags().Var(textFlag{&tenant}, "tenant", "the event's tenant (default the tenant without a name)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var found refusal.Problems
		bounds.CheckOptionalName(tenant, bounds.Name, found.On("tenant"))
		bounds.CheckRequired(args[0], bounds.EventID, found.On("EVENT-ID"))
		if err := found.Err(); err != nil {
			return err
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			e, err := findEvent(ctx, box, tenant, args[0])
			if err != nil {
				return cursorGone(err)
			}
			return output(cmd, newEventReport(e))
		})
	}
	return cmd
}

// findEvent reads the event that has an id in a tenant.
func findEvent(ctx context.Context, box *outbox.Box, tenant, id string) (events.Event, error) {
	log, err := events.New(box, events.Config{})
	if err != nil {
		return events.Event{}, err
	}
	var found []db.FindEventsRow
	err = box.Store().Transact(ctx, func(tx db.Tx) (err error) {
		found, err = box.Store().FindEvents(ctx, tx, db.FindEventsParams{Tenants: []string{tenant}, EventIds: []string{id}, Digests: [][]byte{{}}})
		return err
	})
	if err == nil && len(found) == 0 {
		err = notDonef("no event has that id; was it purged, or is it another --tenant's?")
	}
	if err != nil {
		return events.Event{}, err
	}
	return log.Source(ctx, outbox.Message{Tenant: tenant, SourcePosition: found[0].Position, SourceEventID: id})
}

type eventReport struct {
	Position      string            `json:"position"`
	ID            string            `json:"id"`
	Tenant        string            `json:"tenant"`
	Stream        string            `json:"stream"`
	Type          string            `json:"type"`
	RecordedAt    time.Time         `json:"recorded_at"`
	Cursor        string            `json:"cursor,omitempty"` // of one that was read from the stream
	Metadata      map[string]string `json:"metadata"`
	PayloadBytes  int               `json:"payload_bytes"`
	PayloadText   string            `json:"payload_text,omitempty"`
	PayloadBase64 []byte            `json:"payload_base64"`
}

func newEventReport(e events.Event) eventReport {
	r := eventReport{
		Position: strconv.FormatInt(e.Position, 10), ID: e.ID, Tenant: e.Tenant, Stream: e.Stream, Type: e.Type, RecordedAt: e.RecordedAt,
		Cursor: e.Cursor().String(), Metadata: e.Metadata, PayloadBytes: len(e.Payload), PayloadBase64: e.Payload,
	}
	if utf8.Valid(e.Payload) {
		r.PayloadText = string(e.Payload)
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	return r
}

func (r eventReport) text(p *page) {
	rows := [][]string{
		{"position", r.Position}, {"type", r.Type}, {"stream", orDash(r.Stream)}, {"tenant", orDash(r.Tenant)}, {"recorded", instant(r.RecordedAt)},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		rows = append(rows, []string{"metadata " + name, r.Metadata[name]})
	}
	rows = append(rows, []string{"payload", fmt.Sprintf("%s bytes", thousands(int64(r.PayloadBytes)))})
	p.table([]string{"event", printable(r.ID)}, rows)
	p.payload(r.PayloadBase64)
}
