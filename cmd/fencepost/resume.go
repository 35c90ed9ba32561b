package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newResume() *cobra.Command {
	var c connection
	var by acting
	var which lanes
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Lift a pause",
		Long: `Lift the pause of exactly the names that it was given with (status shows them), or the pause of everything with
--all. Another pause may still stop some of these lanes, so those that are left are listed.`,
		Example: `  fencepost resume --kind mail --reason "mail server is back"
  fencepost resume --all --reason "the copy has its own targets"`,
		Args: noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	by.addFlags(cmd)
	which.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return which.run(cmd, &c, by, func(ctx context.Context, box *outbox.Box, by outbox.By) error {
			lifted, err := box.Resume(ctx, outbox.AllTenants, which.pattern, by)
			if err != nil {
				return err
			}
			left, err := box.Pauses(ctx, outbox.AllTenants)
			if err != nil {
				return err
			}
			return newResumeReport(lifted, left).print(cmd)
		})
	}
	return cmd
}

type resumeReport struct {
	Resumed bool          `json:"resumed"`
	Pauses  []pauseStatus `json:"pauses"` // those that are left
}

func newResumeReport(lifted bool, left []outbox.Pause) resumeReport {
	r := resumeReport{Resumed: lifted, Pauses: []pauseStatus{}}
	for _, pause := range left {
		r.Pauses = append(r.Pauses, newPauseStatus(pause))
	}
	return r
}

func (r resumeReport) print(cmd *cobra.Command) error {
	if err := output(cmd, r); err != nil {
		return err
	}
	if !r.Resumed {
		return notDonef("there is no pause of exactly these names")
	}
	return nil
}

func (r resumeReport) text(p *page) {
	if r.Resumed {
		p.linef("resumed")
	}
	for _, pause := range r.Pauses {
		p.linef("still paused %s since %s by %s: %s", pause.lanes(), instant(pause.PausedAt), pause.Actor, pause.Reason)
	}
}

// lanes are the names of a pause, as people read them.
func (s pauseStatus) lanes() string {
	tenant := s.Tenant
	if tenant == "" {
		tenant = `""`
	}
	return strings.Join([]string{s.Consumer, s.Target, s.Kind, tenant}, " ")
}
