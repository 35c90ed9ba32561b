package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newRetries() *cobra.Command {
	var c connection
	var policy outbox.Policy
	cmd := &cobra.Command{
		Use:   "retries ID",
		Short: "Foretell when a message is tried again, and when it dies",
		Long: `Foretell when an open message is tried again, and when it dies if every attempt fails. Delays are exact: they follow
from the policy and from the message's tenant, consumer, key and attempt alone. What attempts take, and a sender that
is busy, comes on top of each; an attempt that was not made (unavailable, snoozed, given back) does not count.

The policy is in the consumer's program, so give here what it sets there; the defaults are the library's. A backoff
function of its own cannot be told.`,
		Example: `  fencepost retries 4711
  fencepost retries 4711 --max-attempts 5 --initial-delay 1s --max-delay 1m --jitter none --max-age none --json`,
		Args: oneMessage,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	scope := addTenants(cmd)
	addPolicy(cmd, &policy)
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
			if details.State != outbox.StatePending && details.State != outbox.StateLeased {
				return notDonef("message %d is %s: it is not tried again by itself", id, details.State)
			}
			consumer, err := box.Consumer(details.Consumer, details.Target, policy)
			if err != nil {
				return err
			}
			now, err := databaseNow(ctx, box)
			if err != nil {
				return err
			}
			return output(cmd, foretell(box, consumer, details, now))
		})
	}
	return cmd
}

type retriesReport struct {
	ID          string       `json:"id"`
	State       outbox.State `json:"state"`
	Attempt     int          `json:"attempt"`
	MaxAttempts int          `json:"max_attempts"`
	ExpiresAt   *time.Time   `json:"expires_at,omitempty"` // absent = no age limit
	Retries     []retry      `json:"retries"`
	DiesAt      time.Time    `json:"dies_at"`
	Cause       outbox.Cause `json:"cause"`
}

// A retry is an attempt to come.
type retry struct {
	Attempt      int       `json:"attempt"`
	At           time.Time `json:"at"`
	DelaySeconds float64   `json:"delay_seconds"` // after the attempt before it failed; 0 for the first of all

	delay time.Duration
}

// foretell goes through the attempts that are left as if each failed at the moment it began, by the rules of a lease and a settle.
func foretell(box *outbox.Box, consumer *outbox.Consumer, d outbox.Details, now time.Time) retriesReport {
	policy := consumer.Policy()
	r := retriesReport{
		ID: strconv.FormatInt(d.ID, 10), State: d.State, Attempt: d.Attempt, MaxAttempts: max(policy.MaxAttempts, d.AttemptLimit),
		ExpiresAt: applies(expiry(d, policy)), Retries: []retry{},
	}
	die := func(at time.Time, cause outbox.Cause) retriesReport {
		r.DiesAt, r.Cause = at, cause
		return r
	}
	attempt, at, delay := d.Attempt, later(d.DueAt, now), time.Duration(0)
	message := outbox.Message{Tenant: d.Tenant, Consumer: d.Consumer, Key: d.Key}
	for running := d.State == outbox.StateLeased; ; running = false {
		if !running {
			switch { // what a lease does
			case attempt >= r.MaxAttempts && d.LeasedUntil.IsZero():
				return die(at, outbox.CauseAttempts)
			case attempt >= r.MaxAttempts:
				return die(at, outbox.CauseExhausted)
			case r.ExpiresAt != nil && !at.Before(*r.ExpiresAt):
				return die(at, outbox.CauseAge)
			}
			attempt++
			r.Retries = append(r.Retries, retry{Attempt: attempt, At: at, DelaySeconds: delay.Seconds(), delay: delay})
		}
		switch { // what a settle does
		case attempt >= policy.MaxAttempts:
			return die(at, outbox.CauseAttempts)
		case r.ExpiresAt != nil && !at.Before(*r.ExpiresAt):
			return die(at, outbox.CauseAge)
		}
		delay = box.RetryDelay(consumer, message, attempt)
		at = at.Add(delay)
	}
}

// expiry is when a message is too old: by what its producer gave it or by the policy, whichever is sooner; zero for never.
func expiry(d outbox.Details, policy outbox.Policy) time.Time {
	if policy.MaxAge == outbox.NoMaxAge {
		return d.ExpiresAt
	}
	byPolicy := d.BornAt.Add(policy.MaxAge)
	if d.ExpiresAt.IsZero() || byPolicy.Before(d.ExpiresAt) {
		return byPolicy
	}
	return d.ExpiresAt
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r retriesReport) text(p *page) {
	p.linef("message %s is %s, attempt %d of %d", r.ID, string(r.State), r.Attempt, r.MaxAttempts)
	var rows [][]string
	for _, retry := range r.Retries {
		rows = append(rows, []string{fmt.Sprint(retry.Attempt), precise(retry.At), retry.delay.Round(time.Millisecond).String()})
	}
	if len(rows) > 0 {
		p.table([]string{"ATTEMPT", "DUE", "AFTER A DELAY OF"}, rows)
	}
	p.linef("dead at %s (%s) unless one succeeds", precise(r.DiesAt), string(r.Cause))
	if r.ExpiresAt != nil {
		p.linef("too old at %s", precise(*r.ExpiresAt))
	}
}

// precise is instant with milliseconds.
func precise(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.000Z") }
