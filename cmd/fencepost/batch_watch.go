package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/batch"
)

func newBatchWatch() *cobra.Command {
	var b batching
	every := time.Second
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a batch until it is completed, or until Ctrl-C",
		Long: `Watch a batch until it is completed, or until Ctrl-C: on a terminal a bar, else a line whenever the counts have changed, with
--json one JSON object a line.`,
		Example: `  fencepost batch watch 4711
  fencepost batch watch 4711 --every 5s --json | jq .open`,
	}
	b.addFlags(cmd)
	cmd.Flags().Var(durationFlag{&every, 100 * time.Millisecond, time.Hour}, "every", "how often to look")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return b.withBatches(cmd, func(ctx context.Context, batches *batch.Batches) error {
			out := progressOutput{out: cmd.OutOrStdout(), bar: isTerminal(cmd.OutOrStdout()), json: asJSON(cmd)}
			defer out.end()
			for p, err := range batches.Watch(ctx, b.scope(), b.id, every) {
				if ctx.Err() != nil {
					return nil // a Ctrl-C is how it ends
				}
				if err == nil {
					err = out.show(p)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// A progressOutput tells progress as it comes.
type progressOutput struct {
	out       io.Writer
	bar, json bool
	open      bool // a bar stands on the line
}

const barWidth = 30

func (o *progressOutput) show(p batch.Progress) error {
	switch {
	case o.json:
		line, err := json.Marshal(p)
		if err == nil {
			_, err = o.out.Write(append(printableJSON(line), '\n'))
		}
		return err
	case o.bar:
		ended := p.Total - p.Open
		filled := barWidth * ended / max(p.Total, 1)
		o.open = true
		_, err := fmt.Fprintf(o.out, "\r[%s%s] %3d%%  %s\x1b[K", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), 100*ended/max(p.Total, 1), counts(p))
		return err
	}
	_, err := fmt.Fprintf(o.out, "%-9s  %s\n", batchState(p.Batch), counts(p))
	return err
}

// end goes on to the next line.
func (o *progressOutput) end() {
	if o.open {
		fmt.Fprintln(o.out)
	}
}

// counts are those of the fates that there are.
func counts(p batch.Progress) string {
	parts := []string{many(p.Total) + " rows"}
	for _, c := range []struct {
		n    int
		fate batch.Fate
	}{
		{p.Open, batch.FateOpen}, {p.Delivered, batch.FateDelivered}, {p.Dead, batch.FateDead}, {p.Cancelled, batch.FateCancelled},
		{p.Expired, batch.FateExpired}, {p.Rejected, batch.FateRejected},
	} {
		if c.n > 0 {
			parts = append(parts, many(c.n)+" "+string(c.fate))
		}
	}
	return strings.Join(parts, ", ")
}
