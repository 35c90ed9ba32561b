package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

func newBatchList() *cobra.Command {
	var c connection
	query := batch.ListQuery{}
	limit, after := 50, 0
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List batches, the newest first, page by page",
		Long: `List batches, the newest first, page by page, without their counts, which show and watch have. One is filling until it
has all its rows, then open until each has its end, then completed.`,
		Example: `  fencepost batch list
  fencepost batch list --unfinished --consumer invites
  fencepost batch list --json | jq -r '.batches[].id'`,
		Args: noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	scope := addTenants(cmd)
	flags := cmd.Flags()
	flags.Var(textFlag{&query.Consumer}, "consumer", "only this consumer")
	flags.BoolVar(&query.Unfinished, "unfinished", false, "leave out what is completed")
	flags.Var(intFlag{&limit, 1, pageSize}, "limit", "batches of a page")
	flags.Var(optionalInt{intFlag{&after, 1, 1<<63 - 1}}, "after", "go on after this id, which the page before gave")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withBatches(cmd, func(ctx context.Context, batches *batch.Batches) error {
			return c.within(ctx, func(ctx context.Context) error {
				r := batchesReport{Batches: []batch.Batch{}}
				for query.Before = int64(after); ; {
					query.Limit = limit - len(r.Batches)
					page, err := batches.List(ctx, scope(), query)
					if err != nil {
						return err
					}
					r.Batches = append(r.Batches, page.Batches...)
					if query.Before = page.Next; page.More && len(r.Batches) == limit {
						r.Next = strconv.FormatInt(page.Next, 10)
					}
					if !page.More || len(r.Batches) == limit {
						return output(cmd, r)
					}
				}
			})
		})
	}
	return cmd
}

type batchesReport struct {
	Batches []batch.Batch `json:"batches"`
	Next    string        `json:"next,omitempty"` // absent on the last page
}

func (r batchesReport) text(p *page) {
	if len(r.Batches) == 0 {
		p.linef("no batches")
		return
	}
	var rows [][]string
	for _, b := range r.Batches {
		rows = append(rows, []string{
			strconv.FormatInt(b.ID, 10), batchState(b), b.Consumer, b.Target, b.Kind, orDash(b.Tenant), b.Key, strconv.Itoa(b.Run), instant(b.CreatedAt), instant(b.CompletedAt),
		})
	}
	p.table([]string{"ID", "STATE", "CONSUMER", "TARGET", "KIND", "TENANT", "KEY", "RUN", "CREATED", "COMPLETED"}, rows)
	if r.Next != "" {
		p.linef("\nmore: --after %s", r.Next)
	}
}

func newBatchRows() *cobra.Command {
	var b batching
	query := batch.RowsQuery{Limit: 50}
	fate := ""
	fates := make([]string, len(batch.Fates))
	for i, f := range batch.Fates {
		fates[i] = string(f)
	}
	cmd := &cobra.Command{
		Use:   "rows ID",
		Short: "List the rows of a batch, page by page",
		Long: `List the rows of a batch by number, page by page, without their content, which show has by the id of a row's message: of a
delivered row the identifier of what it became, of any other the reason.`,
		Example: `  fencepost batch rows 4711
  fencepost batch rows 4711 --fate dead --limit 20
  fencepost batch rows 4711 --fate rejected --json | jq -r '.rows[].reason'`,
	}
	b.addFlags(cmd)
	flags := cmd.Flags()
	flags.Var(choiceFlag{&fate, fates}, "fate", "only rows of this fate: open, delivered, dead, cancelled, expired, rejected (default all)")
	flags.Var(intFlag{&query.Limit, 1, pageSize}, "limit", "rows of a page")
	flags.Var(optionalInt{intFlag{&query.After, 1, batch.MaxRows}}, "after", "go on after this number, which the page before gave")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query.Fate = batch.Fate(fate)
		return b.withBatches(cmd, func(ctx context.Context, batches *batch.Batches) error {
			return b.within(ctx, func(ctx context.Context) error {
				if _, err := batches.Progress(ctx, b.scope(), b.id); err != nil {
					return err
				}
				rows, err := batches.ListRows(ctx, b.scope(), b.id, query)
				if err != nil {
					return err
				}
				return output(cmd, newRowsReport(rows, query.Limit))
			})
		})
	}
	return cmd
}

type rowsReport struct {
	Rows []rowSummary `json:"rows"`
	Next int          `json:"next,omitempty"` // absent on the last page
}

type rowSummary struct {
	Number    int        `json:"number"`
	Fate      string     `json:"fate"`
	State     string     `json:"state,omitempty"` // of an open row's message
	MessageID string     `json:"message_id,omitempty"`
	Key       string     `json:"key,omitempty"`
	Attempt   int        `json:"attempt"`
	Cause     string     `json:"cause,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Result    string     `json:"result,omitempty"`
	SettledAt *time.Time `json:"settled_at,omitempty"`
}

func newRowsReport(rows []batch.RowSummary, limit int) rowsReport {
	r := rowsReport{Rows: []rowSummary{}}
	for _, row := range rows {
		s := rowSummary{
			Number: row.Number, Fate: string(row.Fate), Key: row.Key, Attempt: row.Attempt, Cause: string(row.Cause), Reason: row.Reason, Result: row.Result,
			SettledAt: applies(row.SettledAt),
		}
		if row.MessageID != 0 {
			s.MessageID = strconv.FormatInt(row.MessageID, 10)
		}
		if row.State != outbox.StatePending {
			s.State = string(row.State)
		}
		r.Rows = append(r.Rows, s)
	}
	if len(rows) == limit {
		r.Next = rows[len(rows)-1].Number
	}
	return r
}

func (r rowsReport) text(p *page) {
	if len(r.Rows) == 0 {
		p.linef("no rows")
		return
	}
	var rows [][]string
	for _, row := range r.Rows {
		fate, ended := row.Fate, "-"
		switch {
		case row.State != "":
			fate += " (" + row.State + ")"
		case row.Cause != "":
			fate += " (" + row.Cause + ")"
		}
		if row.SettledAt != nil {
			ended = instant(*row.SettledAt)
		}
		rows = append(rows, []string{
			strconv.Itoa(row.Number), fate, orDash(row.MessageID), orDash(row.Key), strconv.Itoa(row.Attempt), ended, orDash(shortened(row.Result + row.Reason)),
		})
	}
	p.table([]string{"NUMBER", "FATE", "MESSAGE", "KEY", "ATTEMPT", "ENDED", "RESULT OR REASON"}, rows)
	if r.Next != 0 {
		p.linef("\nmore: --after %d", r.Next)
	}
}
