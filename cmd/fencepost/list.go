package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

// states are what --state takes.
var states = []string{"open", "pending", "leased", "parked", "delivered", "dead", "cancelled", "expired"}

type listing struct {
	connection
	state, after string
	filter       outbox.Filter
	limit        int
}

func newList() *cobra.Command {
	l := listing{state: "open", limit: 50}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List messages of one state, page by page",
		Long: `List messages of one state, page by page, without their payloads: open ones from the oldest id on, delivered ones
from the newest id down, the others from the latest settled back. A page that is not the last says where to go on.
Messages that were committed late, below the place that was reached, are not shown.`,
		Example: `  fencepost list
  fencepost list --state dead --consumer billing --limit 20
  fencepost list --state dead --after 2026-01-31T10:15:00.5Z/4711
  fencepost list --state parked --json | jq -r '.messages[].id'`,
		Args: noArguments,
	}
	l.addFlags(cmd)
	l.addTimeout(cmd, "give up after this long")
	scope := addTenants(cmd)
	flags := cmd.Flags()
	flags.Var(choiceFlag{&l.state, states}, "state", strings.Join(states, ", "))
	flags.StringVar(&l.filter.Consumer, "consumer", "", "only this consumer")
	flags.StringVar(&l.filter.Target, "target", "", "only this target")
	flags.StringVar(&l.filter.Kind, "kind", "", "only this kind")
	flags.Var(intFlag{&l.limit, 1, 1000}, "limit", "messages of a page")
	flags.StringVar(&l.after, "after", "", "go on after this place, which the page before gave")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query, err := l.query()
		if err != nil {
			return err
		}
		return l.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			page, err := readPage(ctx, box, scope(), query)
			if err != nil {
				return err
			}
			return output(cmd, newListReport(query.State, page))
		})
	}
	return cmd
}

func (l *listing) query() (outbox.ListQuery, error) {
	query := outbox.ListQuery{State: outbox.State(l.state), Filter: l.filter, Limit: l.limit}
	if l.state == "open" {
		query.State = ""
	}
	var err error
	if l.after != "" {
		query.From, err = parseCursor(query.State, l.after)
	}
	return query, err
}

// readPage goes on where one statement, which bounds what it looks at, found less than was asked for.
func readPage(ctx context.Context, box *outbox.Box, scope outbox.Scope, query outbox.ListQuery) (outbox.Page, error) {
	var messages []outbox.Summary
	for {
		page, err := box.List(ctx, scope, query)
		if err != nil {
			return page, err
		}
		messages = append(messages, page.Messages...)
		query.Limit -= len(page.Messages)
		query.From = page.Next
		if !page.More || query.Limit == 0 {
			page.Messages = messages
			return page, nil
		}
	}
}

type listReport struct {
	Messages []messageSummary `json:"messages"`
	Next     string           `json:"next,omitempty"` // absent on the last page

	state outbox.State
}

type messageSummary struct {
	ID          string     `json:"id"`
	Tenant      string     `json:"tenant"`
	Consumer    string     `json:"consumer"`
	Target      string     `json:"target"`
	Kind        string     `json:"kind"`
	Key         string     `json:"key"`
	OrderKey    string     `json:"order_key,omitempty"`
	State       string     `json:"state"`
	Attempt     int        `json:"attempt"`
	Epoch       string     `json:"epoch"` // 64 bits, like an id
	Replays     int        `json:"replays"`
	Cause       string     `json:"cause,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	DueAt       *time.Time `json:"due_at,omitempty"`
	LeasedUntil *time.Time `json:"leased_until,omitempty"`
	SettledAt   *time.Time `json:"settled_at,omitempty"`
	ReplayedAt  *time.Time `json:"replayed_at,omitempty"`
}

func newListReport(state outbox.State, page outbox.Page) listReport {
	r := listReport{Messages: []messageSummary{}, state: state}
	for _, m := range page.Messages {
		r.Messages = append(r.Messages, newMessageSummary(m))
	}
	if page.More {
		r.Next = formatCursor(state, page.Next)
	}
	return r
}

func newMessageSummary(m outbox.Summary) messageSummary {
	return messageSummary{
		ID: strconv.FormatInt(m.ID, 10), Tenant: m.Tenant, Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, Key: m.Key,
		OrderKey: m.OrderKey, State: string(m.State), Attempt: m.Attempt, Epoch: strconv.FormatInt(m.Epoch, 10), Replays: m.Replays,
		Cause: string(m.Cause), Reason: m.Reason, CreatedAt: m.CreatedAt,
		DueAt: applies(m.DueAt), LeasedUntil: applies(m.LeasedUntil), SettledAt: applies(m.SettledAt), ReplayedAt: applies(m.ReplayedAt),
	}
}

// applies is nil for an instant that does not apply.
func applies(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func (r listReport) text(p *page) {
	switch {
	case len(r.Messages) == 0 && r.state == "":
		p.linef("no open messages; --state delivered, dead, cancelled or expired lists those that were settled")
	case len(r.Messages) == 0:
		p.linef("no %s messages", r.state)
	default:
		var rows [][]string
		for _, m := range r.Messages {
			rows = append(rows, []string{
				m.ID, m.state(), m.Consumer, m.Target, m.Kind, orDash(m.Tenant), m.Key, fmt.Sprint(m.Attempt), instant(m.when()), orDash(shortened(m.Reason)),
			})
		}
		p.table([]string{"ID", "STATE", "CONSUMER", "TARGET", "KIND", "TENANT", "KEY", "ATTEMPT", "DUE OR SETTLED", "REASON"}, rows)
	}
	if r.Next != "" {
		p.linef("\nmore: --after %s", r.Next)
	}
}

func (m messageSummary) state() string {
	if m.Cause != "" {
		return m.State + " (" + m.Cause + ")"
	}
	return m.State
}

// when is the instant that matters most: when a message is due, or was settled.
func (m messageSummary) when() time.Time {
	for _, at := range []*time.Time{m.SettledAt, m.DueAt} {
		if at != nil {
			return *at
		}
	}
	return time.Time{}
}

// shortened keeps a table readable; show has the whole text.
func shortened(reason string) string {
	const limit = 60
	if runes := []rune(reason); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return reason
}
